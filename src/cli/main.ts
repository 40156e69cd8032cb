#!/usr/bin/env node
import process from 'node:process';
import { run } from './program.js';

const { env, stdout, stderr } = process;
let isLost = false;
for (const output of [stdout, stderr]) {
  output.on('error', (error: NodeJS.ErrnoException) => {
    // The reader has closed the pipe, as `head` does. The command goes on, and its exit code is still valid.
    if (error.code === 'EPIPE') return;
    // For example a full disk. The command goes on here, too: it may be half-way through a change.
    if (!isLost && output === stdout) stderr.write(`fenced-lock: The output cannot be written: ${error.message}.\n`);
    isLost = true;
    process.exitCode = 1;
  });
}
const stopped = () =>
  new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => resolve());
  });
const world = { cwd: process.cwd(), env, now: () => new Date(), stdout, stderr, stopped };
void run(process.argv.slice(2), world).then((code) => {
  // Not exit(): what was written to a pipe must arrive.
  process.exitCode = isLost ? 1 : code;
});
