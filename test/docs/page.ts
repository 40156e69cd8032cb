import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));
export const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');

/** The blocks of code of a page. */
export const blocks = (file: string, language = 'ts') =>
  [...read(file).matchAll(new RegExp(`^ *\`\`\`${language}\\n([\\s\\S]*?)^ *\`\`\``, 'gm'))].map(
    ([, code = '']) => code,
  );

/** Code of a page with the imports of this repository's sources and of its generated client. */
export function ours(code: string, ending: 'js' | 'ts' = 'js'): string {
  return code
    .replaceAll(
      /'prisma-extension-fenced-lock\/([\w-]+)'/g,
      (_, name: string) => `'${ROOT}src/addons/${name}/index.${ending}'`,
    )
    .replaceAll("'prisma-extension-fenced-lock'", `'${ROOT}src/index.${ending}'`)
    .replaceAll("'./generated/prisma/client.js'", `'${ROOT}test/generated/prisma/client.${ending}'`);
}

/** A folder beside the generated clients, where the packages of this repository are found. */
export function folderFor(name: string): { folder: string; remove: () => void } {
  const folder = mkdtempSync(join(ROOT, `test/generated/${name}-`));
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
