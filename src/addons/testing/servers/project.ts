import { createRequire } from 'node:module';
import { join } from 'node:path';

/** Where a package of the project that is tested is: optional ones are looked for there, whoever has installed them. */
export function resolveFromProject(name: string): string {
  return createRequire(join(process.cwd(), 'package.json')).resolve(name);
}
