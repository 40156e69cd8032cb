#!/usr/bin/env node
import process from 'node:process';
import { run } from './program.js';

const { env, stdout, stderr } = process;
void run(process.argv.slice(2), { cwd: process.cwd(), env, now: () => new Date(), stdout, stderr }).then((code) => {
  // Not exit(): what was written to a pipe must arrive.
  process.exitCode = code;
});
