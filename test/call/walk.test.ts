import { readFileSync } from 'node:fs';
import { expect, inject, test } from 'vitest';
import { FenceWorld } from '../support/fence-world.js';
import { describeWithShop, Shop } from '../support/shop.js';
import { startWorker, type WorkerMessage } from '../support/worker.js';

/** What the walk may not exceed: a reader can follow one call in an hour. */
const MOST_FILES = 25;
const MOST_TURN_BACKS = 5;

describeWithShop('the walk of one uncontended $withLock', () => {
  const shop = new Shop();
  const world = new FenceWorld('walk', 'allow');
  const page = readFileSync(new URL('../../docs/architecture.md', import.meta.url), 'utf8');
  const section = /^## The walk of one call$([\s\S]*?)(?=^## )/m.exec(page)?.[1] ?? '';
  const [walk = '', more = ''] = section.split('Without the guard');
  const filesIn = (text: string) => [...text.matchAll(/`(src\/[\w/.-]+\.ts)`/g)].map(([, file]) => file);

  /** The files of src/ outside of base/ with a function that ran during a call. */
  async function walked(kind: 'guarded' | 'unguarded', postgres: string, id: number): Promise<string[]> {
    const worker = startWorker(new URL('./walk.worker.ts', import.meta.url), [
      kind,
      postgres,
      inject('redis').url ?? '',
      String(id),
    ]);
    const { files } = await worker.next<WorkerMessage & { files: string[] }>('walk');
    await worker.exited;
    return files.filter((file) => !file.startsWith('src/base/')).toSorted();
  }

  test('with the guard, it passes the files that docs/architecture.md lists, and no other', async () => {
    const [row] = await world
      .overriding((session) =>
        session.query<{ id: number }>(`INSERT INTO people."Member" (name, value) VALUES ('walk', 0) RETURNING id`),
      )
      .then(({ rows }) => rows);
    expect(await walked('guarded', world.url, row?.id ?? 0)).toEqual(filesIn(walk).toSorted());
    expect(filesIn(walk).length).toBeLessThanOrEqual(MOST_FILES);
  });

  test('without the guard, it passes those, and the ones that are listed in addition', async () => {
    const { id } = await shop.product(100);
    const files = await walked('unguarded', inject('postgres').app, id);
    expect(files).toEqual([...filesIn(walk), ...filesIn(more)].toSorted());
  });

  test('it turns back at most five times', () => {
    const turnBacks = [...walk.matchAll(/\*\*turn-back (\d)\*\*/g)].map(([, number]) => Number(number));
    expect(turnBacks).toEqual([...turnBacks.keys()].map((index) => index + 1));
    expect(turnBacks.length).toBeGreaterThan(0);
    expect(turnBacks.length).toBeLessThanOrEqual(MOST_TURN_BACKS);
  });
});
