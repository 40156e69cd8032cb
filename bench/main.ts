// npm run bench [-- scenario …]: each scenario starts from fresh servers of its own.

import { guard } from './scenarios/guard.js';
import { overhead } from './scenarios/overhead.js';
import { startShop } from './shop.js';

const SCENARIOS: Readonly<Record<string, (shop: Awaited<ReturnType<typeof startShop>>) => Promise<void>>> = {
  overhead,
  guard,
};

const asked = process.argv.slice(2);
const unknown = asked.find((name) => !(name in SCENARIOS));
if (unknown !== undefined) {
  console.error(`There is no scenario ${unknown}. There are: ${Object.keys(SCENARIOS).join(', ')}.`);
  process.exit(2);
}
for (const name of asked.length > 0 ? asked : Object.keys(SCENARIOS)) {
  const shop = await startShop();
  try {
    console.log(`${name} on ${shop.servers}`);
    await SCENARIOS[name]?.(shop);
  } finally {
    await shop.stop();
  }
}
