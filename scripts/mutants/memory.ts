import type { Mutant } from './mutant.js';

const file = 'src/lease/stores/memory.ts';
const leases = 'src/lease/stores/memory-leases.ts';
const values = 'src/lease/stores/expiring-map.ts';
const tests = ['test/lease/stores/memory', 'test/lease/stores/expiring-map'];

export const MEMORY: readonly Mutant[] = [
  {
    name: 'memory store: two stores are one room in Postgres',
    file,
    change: [['randomInt(2 ** 31)', '0 * randomInt(2 ** 31)']],
    tests: ['test/call/on-memory'],
    only: 'neither side ends the other',
    why: 'A process with a memory store would end healthy transactions of another one.',
  },
  {
    name: 'memory store: wakes in the context of the one that tells',
    file,
    change: [
      [
        'if (watcher.open) this.#context.runInAsyncScope(watcher.wake, undefined, wakeUp)',
        'if (watcher.open) watcher.wake(wakeUp)',
      ],
    ],
    tests,
    only: 'async context',
    why: 'What a waiter begins then would count as a part of the lock of the one before.',
  },
  {
    name: 'memory store: offers a key to one that has ended',
    file: leases,
    change: [['      if (!first.receiver.hears(key)) continue;\n', '']],
    tests,
    only: 'killed is skipped',
    why: 'Those behind it would wait for an offer that nobody takes.',
  },
  {
    name: 'memory store: a key is taken from whoever has it',
    file,
    change: [['former !== undefined && leases.holderOf(key) === former', 'former !== undefined']],
    tests,
    only: 'not taken from a holder that came after',
    why: 'A late one would take it from somebody else.',
  },
  {
    name: 'memory store: who takes the key for a shorter time tells nobody',
    file,
    change: [['if (leases.leftOf(key) > leaseTime) leases.tell', 'if (leaseTime < 0) leases.tell']],
    tests,
    only: 'tells the others if its lease is shorter',
    why: 'If the next one ends, the others sleep to the end of the former lease.',
  },
  {
    name: 'memory store: who takes the key from a former holder keeps its place',
    file,
    change: [['      leases.leave(key, holder);\n      // The others sleep', '      // The others sleep']],
    tests,
    only: 'from a former holder',
    why: 'The key would be offered to nobody who waits.',
  },
  {
    name: 'memory store: a look at a free key passes over those who wait',
    file,
    change: [['[undefined, holder].includes(leases.passOn(key, { own: holder }))', 'true']],
    tests,
    only: 'makes the offer to the first',
    why: 'Not first come, first served any more.',
  },
  {
    name: 'memory store: a renewal that finds nothing tells nobody',
    file,
    change: [['      else if (present === undefined) this.#passOn(key);\n', '']],
    tests,
    only: 'a renewal that finds nothing wakes',
    why: 'Those who wait would sleep to the end of a lease that is lost.',
  },
  {
    name: 'memory store: who gives up passes no free key on',
    file,
    change: [
      [
        'if (present === undefined || present === holder) this.#passOn(key, quietly);',
        'if (present === holder) this.#passOn(key, quietly);',
      ],
    ],
    tests,
    why: 'Those who wait would sleep to the end of a lease that nobody has.',
  },
  {
    name: 'memory store: keeps what has ended',
    file: values,
    change: [['if (this.#entries.size >= this.#sweepAt) this.#sweep();', '']],
    tests,
    only: 'are not kept',
    why: 'Each key that was ever held would stay in memory.',
  },
];
