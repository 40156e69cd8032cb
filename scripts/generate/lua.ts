import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { literalOf } from './literal.js';

const REPLIES: Record<string, string> = { integer: 'number', string: 'string', list: 'unknown[]' };

function header(text: string, name: string, file: string): string {
  const line = new RegExp(`^-- ${name}( .+)?$`, 'm').exec(text);
  if (line === null) throw new Error(`lua/${file}: the header has no line "-- ${name} …"`);
  return line[1]?.trim() ?? '';
}

const words = (line: string) => line.split(/\s+/).filter((word) => word !== '');

/** The functions that a script says it USES stand before it: Redis has no other way to share them. */
function withUses(text: string, folder: URL): string {
  const used = /^-- USES +(.+)$/m.exec(text)?.[1] ?? '';
  return [...words(used).map((file) => readFileSync(new URL(file, folder), 'utf8')), text].join('\n');
}

/** What is sent: the script without comments and blank lines. */
function body(text: string): string {
  return text
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.trimStart().startsWith('--'))
    .join('\n');
}

/** The header must tell the truth: as many KEYS and ARGV as the script uses. */
function checkCount(text: string, table: 'KEYS' | 'ARGV', names: string[], file: string): void {
  const used = [...body(text).matchAll(new RegExp(`${table}\\[(\\d+)\\]`, 'g'))].map((match) => Number(match[1]));
  if (Math.max(0, ...used) !== names.length) {
    throw new Error(`lua/${file}: the header names ${names.length} ${table}, the script uses ${Math.max(0, ...used)}`);
  }
}

const tuple = (names: string[]) => `[${names.map((name) => `${name}: string`).join(', ')}]`;

/** The scripts of lua/, typed, as a module. */
export function luaModule(folder: URL): string {
  const scripts = readdirSync(folder)
    .filter((file) => file.endsWith('.lua'))
    .sort()
    .map((file) => {
      const text = readFileSync(new URL(file, folder), 'utf8');
      const name = file.slice(0, -'.lua'.length);
      const keys = words(header(text, 'KEYS', file));
      const args = words(header(text, 'ARGV', file));
      const reply = REPLIES[header(text, 'REPLY', file).split(':')[0] ?? ''];
      if (reply === undefined) throw new Error(`lua/${file}: REPLY must begin with one of ${Object.keys(REPLIES)}`);
      checkCount(text, 'KEYS', keys, file);
      checkCount(text, 'ARGV', args, file);
      const lua = body(withUses(text, folder));
      const sha1 = createHash('sha1').update(lua).digest('hex');
      // `yield` is no name in JavaScript.
      return `export const ${name === 'yield' ? 'yield_' : name}: Script<${tuple(keys)}, ${tuple(args)}, ${reply}> = {
  name: '${name}',
  keys: ${keys.length},
  sha1: '${sha1}',
  lua: ${literalOf(lua)},
};
`;
    });
  return `// DO NOT EDIT: made from lua/*.lua by \`npm run generate\`.
import type { Script } from './script.js';

${scripts.join('\n')}`;
}
