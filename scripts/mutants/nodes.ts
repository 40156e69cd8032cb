import type { Mutant } from './mutant.js';

const revival = 'src/redis/topology/revival.ts';
const refusal = 'src/redis/topology/refused-connection.ts';

export const NODES: readonly Mutant[] = [
  {
    name: 'client: one that was closed is asked until the wait time is over',
    file: 'src/redis/command-sender.ts',
    change: [['this.#nodes.ended ? turnOfLoop() : this.#connection.awaited', 'this.#connection.awaited']],
    tests: ['test/call/closed-clients'],
    only: 'a call fails at once, says so, and does nothing',
    why: 'Nobody connects it again while the call waits.',
  },
  {
    name: 'client: a Cluster client that was closed before the store was opened again counts as connecting',
    file: 'src/redis/topology/nodes.ts',
    change: [['(this.#hasEnded || manuallyClosing === true)', 'this.#hasEnded']],
    tests: ['test/redis/topology/cluster-client.slow'],
    only: 'when the locks were closed already',
    why: 'A request that comes after the shutdown would wait for its whole wait time.',
  },
  {
    name: 'client: one that connects again counts as closed',
    file: 'src/redis/command-sender.ts',
    change: [['if (!this.#nodes.ended) {', 'if (READY.includes(this.#redis.status)) {']],
    tests: ['test/call/closed-clients'],
    only: 'is waited for',
    why: 'A restart of Redis would refuse calls that have the time to wait.',
  },
  {
    name: 'client: a connection that comes to nothing is reported without the URL that it would need',
    file: 'src/redis/command-sender.ts',
    change: [['this.#nodes.failure === undefined ?', 'false ?']],
    tests: ['test/redis/tls'],
    only: 'still waits for the handshake',
    why: 'A client with TLS and a server without wait for each other, and neither says so.',
  },
  {
    name: 'client: a pool that was ended rejects with its own error',
    file: 'src/transaction/transaction.ts',
    change: [
      ["      if (database.isEnded?.(error)) throw new LockUnavailableError(leases.key, error, 'Postgres');\n", ''],
    ],
    tests: ['test/call/closed-clients'],
    only: 'gives its key back',
    why: 'The error would have no code.',
  },
  {
    name: 'store: an answer that comes late opens again what was closed',
    file: 'src/redis/store.ts',
    change: [['if (nodes.resends &&', 'if (this.#nodes.resends &&']],
    tests: ['test/redis/topology/refused'],
    only: 'leaves nothing with the client',
    why: 'Listeners of ours would stay with the client.',
  },
  {
    name: 'store: what was closed does not listen to its client again',
    file: 'src/redis/store.ts',
    change: [['    this.#open = undefined;\n', '']],
    tests: ['test/redis/topology/refused'],
    only: 'also after the store was closed',
    why: 'A dead node of a quorum would have a vote, and a client of Sentinel would not be revived.',
  },
  {
    name: 'nodes: a client that was cut short stays ended',
    file: revival,
    change: [
      ["    if (this.#wasInterrupted && this.#redis.status === 'end') this.#redis.connect().catch(() => {});\n", ''],
    ],
    tests: ['test/redis/topology/sentinel.slow'],
    only: 'ends for good',
    why: 'After a failover that process would never get a lock again.',
  },
  {
    name: 'nodes: a client that its owner has ended is connected again',
    file: revival,
    change: [['this.#isConnecting && manuallyClosing !== true', 'this.#isConnecting']],
    tests: ['test/redis/topology/sentinel.slow'],
    only: 'stays so',
    why: 'The process would not end.',
  },
  {
    name: 'nodes: a silent node is a dead one',
    file: refusal,
    change: [['isRefusal(redis.stream?.errored) ? REFUSAL_TIME : 0', 'REFUSAL_TIME']],
    tests: ['test/redis/topology/refused', 'test/lease/stores/quorum-faults.slow'],
    only: 'one whose machine answers|one address that refuses',
    why: 'It may keep a lease for somebody who still reaches it.',
  },
  {
    name: 'nodes: who was dead stays so',
    file: refusal,
    change: [["      listen(redis, 'connect', () => believe(0)),\n", '']],
    tests: ['test/redis/topology/refused'],
    why: 'It would have no vote, and give leases.',
  },
  {
    name: 'nodes: a refusal is believed for ever',
    file: refusal,
    change: [['const REFUSAL_TIME = 3_000;', 'const REFUSAL_TIME = 3_000_000;']],
    tests: ['test/redis/topology/refused'],
    why: 'A client that has given up does not hear that the server is back.',
  },
];
