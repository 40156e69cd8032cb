// Writes the modules that are made from other files, and the Prisma clients of the tests and examples. Git has none of them.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { boardModule } from './generate/board.js';
import { generateClients } from './generate/clients.js';
import { luaModule } from './generate/lua.js';
import { reaperModule } from './generate/reaper.js';

const modules = {
  'src/addons/board/assets.generated.ts': await boardModule(),
  'src/redis/scripts.generated.ts': luaModule(new URL('../lua/', import.meta.url)),
  'src/addons/testing/servers/reaper.generated.ts': reaperModule(),
};
for (const [file, text] of Object.entries(modules)) {
  // A file that is newer than dist/ means that dist/ has to be built.
  if (!existsSync(file) || readFileSync(file, 'utf8') !== text) writeFileSync(file, text);
}
await generateClients();
