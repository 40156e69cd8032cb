import { fileURLToPath } from 'node:url';
import { applyMigrations as applyFrom } from '../../../src/addons/testing/servers/migrate.js';

const PROJECT_DIR = fileURLToPath(new URL('../../../prisma/migrations', import.meta.url));

/** Those of this project, unless another folder is named. Returns the names of what was applied now. */
export function applyMigrations(
  url: string,
  { dir = PROJECT_DIR, makesRoles = false }: { dir?: string; makesRoles?: boolean } = {},
): Promise<string[]> {
  return applyFrom(url, { dir, makesRoles });
}
