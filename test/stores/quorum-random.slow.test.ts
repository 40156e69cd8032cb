import { afterEach, expect, test } from 'vitest';
import { now, sleep } from '../../src/base/clock.js';
import type { Turn } from '../../src/waiting/turn.js';
import { seed } from '../options/seed.js';
import { untilHolds } from '../support/eventually.js';
import { Random } from '../support/faults/random.js';
import { type RedisGroup, type RedisServer, startQuorum } from '../support/servers/index.js';
import { describeWithGroup } from '../support/site-suite.js';
import { leaseName, someKey } from '../waiting/actors.js';
import { QuorumActor } from './quorum-actor.js';
import { overUnevenLine } from './uneven-line.js';

const RUNS = Number(process.env['FENCED_LOCK_RUNS'] ?? 3);
const STEPS = 60;
const LEASE = 3_000;
/** What is on its way arrives within this, and a lease that is left behind stays for longer. */
const SETTLED = { timeout: 2_000, interval: 20 };
/** Who is not served so long after everything is well again never will be. */
const SOON = 20_000;

/** Some processes, some nodes, and what goes wrong, drawn by lot. No two have the key at any time. */
class World {
  readonly #random: Random;
  readonly #nodes: readonly RedisServer[];
  readonly #actors: readonly QuorumActor[];
  readonly #key = someKey();
  readonly #held = new Set<Turn>();
  readonly #ended: Promise<void>[] = [];
  readonly #frozen = new Set<RedisServer>();
  #calm = false;
  #forgottenAt = 0;
  served = 0;

  constructor(group: RedisGroup, random: Random) {
    this.#random = random;
    this.#nodes = group.nodes;
    const wrap: ConstructorParameters<typeof QuorumActor>[1] = {
      wrap: (stores) => stores.map((store) => overUnevenLine(store, () => random.next() * 4)),
    };
    this.#actors = [1, 2, 3, 4].map(() => new QuorumActor(group, wrap));
  }

  async step(): Promise<void> {
    switch (this.#random.whole(0, 7)) {
      case 0:
      case 1:
      case 2:
        return this.#ask(this.#random.one(this.#actors));
      case 3:
      case 4:
        return this.#release();
      case 5:
        return this.#freeze(this.#random.one(this.#nodes));
      case 6:
        return this.#thaw();
      default:
        return await this.#forget(this.#random.one(this.#nodes));
    }
  }

  async calmDown(): Promise<void> {
    for (const node of this.#frozen) node.thaw();
    this.#calm = true;
    this.#release();
    const all = Promise.all(this.#ended);
    expect(await Promise.race([all, sleep(SOON)]), 'somebody was not served').toBeDefined();
    await Promise.all(this.#actors.map(({ room }) => room.close()));
    const [observer] = this.#actors as [QuorumActor];
    const left = () => Promise.all(observer.clients.map((client) => client.get(leaseName(this.#key))));
    await untilHolds(async () => expect(await left()).toEqual(Array(this.#nodes.length).fill(null)), SETTLED);
  }

  #ask(actor: QuorumActor): void {
    const asked = { leaseTime: LEASE, waitTime: this.#random.one([0, 300, 60_000]) };
    const wanted = actor.acquire(this.#key, asked).then(
      (turn) => {
        this.served++;
        this.#held.add(turn);
        const rightful = [...this.#held].filter(
          ({ lease }) => lease.loss === undefined && now() - lease.age > this.#forgottenAt,
        );
        expect(new Set(rightful.map(({ lease }) => lease.holder)).size).toBeLessThanOrEqual(1);
        if (this.#calm) this.#release();
      },
      (error: unknown) => expect(error).toMatchObject({ code: expect.stringMatching('LOCK_(TIMEOUT|UNAVAILABLE)') }),
    );
    this.#ended.push(wanted);
  }

  #release(): void {
    for (const turn of this.#held) turn.end();
    this.#held.clear();
  }

  #freeze(node: RedisServer): void {
    this.#frozen.add(node);
    node.freeze();
  }

  #thaw(): void {
    for (const node of this.#frozen) node.thaw();
    this.#frozen.clear();
  }

  /** Who had the key before may have it still, beside the next one: that is what Postgres is for. */
  async #forget(node: RedisServer): Promise<void> {
    if (this.#frozen.has(node)) return;
    this.#forgottenAt = Number.POSITIVE_INFINITY;
    await node.killHard();
    await node.start();
    this.#forgottenAt = now();
  }
}

describeWithGroup(
  `five nodes, and what goes wrong drawn by lot (FC_SEED=${seed})`,
  () => startQuorum(5),
  (group) => {
    afterEach(() => {
      for (const node of group().nodes) node.thaw();
    });

    test(
      `${RUNS} runs of ${STEPS} steps: never two holders, and everybody is served or gives up`,
      async () => {
        for (let run = 0; run < RUNS; run++) {
          const random = new Random(`${seed} ${run}`);
          const world = new World(group(), random);
          for (let each = 0; each < STEPS; each++) {
            await world.step();
            await sleep(random.whole(0, 60));
          }
          await world.calmDown();
          expect(world.served).toBeGreaterThan(0);
        }
      },
      RUNS * 60_000,
    );
  },
);
