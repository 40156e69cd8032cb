// Outlives the process that started it and ends what that one leaves behind. However the parent dies, SIGKILL
// included, the kernel closes its end of our stdin: that is the only message that cannot get lost.
//
// A program of its own, which `npm run generate` makes one text of: it starts fast, and needs no file beside it.
import { rmSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Guarded } from './guard.js';
import { membersOf, signal } from './process-members.js';

const all = new Map<string, Guarded>();

for await (const line of createInterface({ input: process.stdin })) {
  const { id, guarded } = JSON.parse(line) as { id: string; guarded?: Guarded };
  if (guarded) all.set(id, guarded);
  else all.delete(id);
}
// One that cannot be ended must not keep the others alive.
await Promise.allSettled([...all.values()].map(reap));

async function reap({ endSignal, ...group }: Guarded): Promise<void> {
  // A frozen process takes no other signal. Postgres gets the chance to end by itself because only then it gives its
  // System V shared memory back, of which a machine has few.
  signal(membersOf(group), 'SIGCONT');
  if (endSignal !== undefined) signal(membersOf(group), endSignal);
  for (let tries = 0; endSignal !== undefined && tries < 30 && membersOf(group).length > 0; tries++) await sleep(50);

  // Several rounds, because the parent may have died in the middle of starting something.
  for (let round = 0, quiet = 0; round < 50 && quiet < 5; round++) {
    const left = membersOf(group);
    signal(left, 'SIGKILL');
    quiet = left.length === 0 && removed(group.dir) ? quiet + 1 : 0;
    await sleep(50);
  }
}

function removed(dir: string | undefined): boolean {
  try {
    if (dir !== undefined) rmSync(dir, { recursive: true, force: true });
    return true;
  } catch {
    return false; // somebody who is just ending has written to it
  }
}
