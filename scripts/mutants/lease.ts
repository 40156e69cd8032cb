import type { Mutant } from './mutant.js';

const contention = 'src/lease/contention.ts';
const contender = 'src/lease/contender.ts';
const renewal = 'src/lease/renewal.ts';
const lease = 'src/lease/lease.ts';

export const LEASE: readonly Mutant[] = [
  {
    name: 'caller: one that is gone settles',
    file: 'src/lease/caller.ts',
    change: [['    this.#settled = true;\n    offAbort', '    offAbort']],
    tests: ['test/lease/close'],
    only: 'leaves no timer',
    why: 'Its wait time would keep the process alive.',
  },
  {
    name: 'subscribed after the last look',
    file: contention,
    change: [
      [
        'if (await this.#listen()) continue;',
        'if (await this.#listen()) {\n          await this.#bell.sleep(nextLook);\n          continue;\n        }',
      ],
    ],
    tests: ['test/lease/contender'],
    why: 'A release between the two is heard by nobody.',
  },
  {
    name: 'lease counted from its answer',
    file: contention,
    change: [['new Lease(claim, sentAt, answer.shared', 'new Lease(claim, now(), answer.shared']],
    tests: ['test/lease/contender'],
    why: 'It would be believed when it has ended already.',
  },
  {
    name: 'look that nobody wants any more, left as it is',
    file: contention,
    change: [['    if (known) this.#means.giveBack(', '    if (!known) this.#means.giveBack(']],
    tests: ['test/lease/place', 'test/lease/signal'],
    why: 'The lease, or the place, would stay until its end.',
  },
  {
    name: 'somebody else’s turn not timed',
    file: contention,
    change: [
      [
        '    else this.#bell.ringIn(Math.min(wakeUp.expiresIn + 1, Math.max(1, this.#lookedAt + LONGEST_REST - now())));\n',
        '',
      ],
    ],
    tests: ['test/lease/lost-wake-ups'],
    only: 'nobody says so if that one',
    why: 'If that one never comes for it, nobody says so.',
  },
  {
    name: 'rings forgotten after the look',
    file: contention,
    change: [
      ['      this.#bell.reset();\n', ''],
      ['      await this.#bell.sleep(nextLook);', '      this.#bell.reset();\n      await this.#bell.sleep(nextLook);'],
    ],
    tests: ['test/lease/contender', 'test/lease/lost-wake-ups'],
    only: 'while a look is under way',
    why: 'A message that came while the answer was on its way would be lost.',
  },
  {
    name: 'nobody looks after a reconnect',
    file: 'src/redis/subscriber.ts',
    change: [['    if (channel.known) this.#wake(name);\n', '']],
    tests: ['test/redis/subscriber', 'test/lease/lost-wake-ups'],
    why: 'What was published in between is gone.',
  },
  {
    name: 'extension counted from its answer',
    file: renewal,
    change: [['lease.extended(sentAt);', 'lease.extended(now());']],
    tests: ['test/lease/renewal'],
    only: 'counts from when its extension',
    why: 'We would believe in the lease for longer than Redis does.',
  },
  {
    name: 'lost leases extended on',
    file: renewal,
    change: [['        this.#leases.delete(lease);\n        continue;\n', '']],
    tests: ['test/lease/lost-for-good'],
    why: 'What is lost stays lost.',
  },
  {
    name: 'gone is no loss',
    file: renewal,
    change: [["      lease.lose('gone');\n", '']],
    tests: ['test/lease/renewal'],
    only: 'somebody else has the key',
    why: 'The work would go on beside somebody else’s.',
  },
  {
    name: 'expiry read off a timer',
    file: lease,
    change: [["    if (this.#loss === undefined && now() >= this.#expiresAt) this.lose('expired');\n", '']],
    tests: ['test/lease/renewal', 'test/fence/traps'],
    only: 'before any timer',
    why: 'After a stop of the process replies come before overdue timers.',
  },
  {
    name: 'shared lease of a finite age',
    file: lease,
    change: [['return this.shared ? Number.POSITIVE_INFINITY : now() - this.#since;', 'return now() - this.#since;']],
    tests: ['test/calls/shared-blockers'],
    why: 'It would end the work of others, which is well.',
  },
  {
    name: 'given back while the successor works',
    file: contender,
    change: [['        if (this.#turns === 0) this.#next(lease);', '        this.#next(lease);']],
    tests: ['test/calls/chain', 'test/lease/hand-over'],
    why: 'Another process would have the key beside it.',
  },
  {
    name: 'turns without an end',
    file: contender,
    change: [['this.#handovers < this.#shared.maxLocalHandovers', 'this.#handovers < Number.POSITIVE_INFINITY']],
    tests: ['test/lease/hand-over'],
    why: 'A busy process would never let another one in.',
  },
  {
    name: 'lost lease handed over',
    file: contender,
    change: [['maxLocalHandovers && lease.loss === undefined;', 'maxLocalHandovers;']],
    tests: ['test/lease/hand-over'],
    why: 'The next caller would work under nothing.',
  },
  {
    name: 'some of several keys kept',
    file: 'src/lease/grant.ts',
    change: [['    for (const turn of turns) turn.leave();\n    throw error;', '    throw error;']],
    tests: ['test/calls/several-keys'],
    why: 'All or none: the rest would stay locked.',
  },
  {
    name: 'what a frozen Redis gave is not given back',
    file: 'src/lease/fallback.ts',
    change: [['.catch(() => this.#owed.push(claim))', '.catch(() => {})']],
    tests: ['test/lease/fallback', 'test/calls/redis-passed-by'],
    why: 'Others would wait for a lease that nobody has.',
  },
  {
    name: 'name of a holder used again',
    file: contention,
    change: [['            this.#holder = randomUUID();\n            throw', '            throw']],
    tests: ['test/calls/redis-passed-by'],
    only: 'keeps its key',
    why: 'A release that was meant for what it had before would take the key from it.',
  },
  {
    name: 'one owed release holds up the others',
    file: 'src/lease/releases.ts',
    change: [['      if (oldest && matters && this.#owed.delete(oldest)) this.#owed.set(oldest, matters);\n', '']],
    tests: ['test/lease/releases'],
    only: 'hold up',
    why: 'A node that is gone would cost the keys of all others the rest of their leases.',
  },
  {
    name: 'releases owed without end',
    file: 'src/lease/releases.ts',
    change: [['      if (this.#owed.size > REMEMBERED) dropOldest(this.#owed);\n', '']],
    tests: ['test/lease/releases'],
    only: 'last thousand',
    why: 'An outage would fill the memory, and its end be a flood.',
  },
  {
    name: 'extensions wait for the slowest master',
    file: 'src/redis/store.ts',
    change: [
      [
        'groups.size > 1 ? Math.min(...claims.map(({ leaseTime }) => leaseTime)) / 6 : undefined;',
        'groups.size > 1 ? undefined : undefined;',
      ],
    ],
    tests: ['test/redis/cluster-renewal'],
    why: 'A master that is silent would cost the leases of all others.',
  },
];
