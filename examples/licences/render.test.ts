import { expect, test } from 'vitest';
import { describeWithShop, gate } from '../../test/support/shop.js';
import { ExampleWorld } from '../support.js';
import { LICENCES, renderWithLicence } from './render.js';

describeWithShop('licences', () => {
  const world = new ExampleWorld();

  test('of four processes: no licence is used twice at a time, and all are used', async () => {
    const clients = Array.from({ length: 4 }, () => world.client());
    const inUse = new Set<string>();
    const used = new Set<string>();
    const all = gate();
    const films = Array.from({ length: 12 }, (_, n) =>
      renderWithLicence(clients[n % 4] as (typeof clients)[0], async (licence, signal) => {
        expect(inUse.has(licence)).toBe(false);
        inUse.add(licence);
        used.add(licence);
        if (inUse.size === LICENCES.length) all.open();
        await all.opened;
        signal.throwIfAborted();
        inUse.delete(licence);
        return licence;
      }),
    );
    await Promise.all(films);
    expect([...used].toSorted()).toEqual([...LICENCES]);
  });
});
