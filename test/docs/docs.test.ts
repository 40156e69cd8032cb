import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { describe, expect, test } from 'vitest';
import * as everything from '../../src/index.js';
import { DEFAULTS } from '../../src/options.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

function markdown(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.md'))
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)));
}

const DOCUMENTS = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', ...markdown('docs'), ...markdown('examples')];
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const blocks = (file: string) =>
  [...read(file).matchAll(/^ *```ts\n([\s\S]*?)^ *```/gm)].map((match) => match[1] ?? '');

/** What the compiler says of a text, as a module beside the tests' generated client. */
function compile(text: string): string[] {
  const { config } = ts.readConfigFile(join(ROOT, 'tsconfig.json'), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: [] }, ts.sys, ROOT);
  const name = join(ROOT, 'test', 'snippet.ts');
  // A reader's own settings may be laxer than ours, as this one is in most projects.
  const lax = { noPropertyAccessFromIndexSignature: false };
  const paths = {
    'prisma-extension-fenced-lock': [join(ROOT, 'src/index.ts')],
  };
  const withPaths = { ...options, ...lax, paths };
  const host = ts.createCompilerHost(withPaths);
  const { getSourceFile, fileExists } = host;
  host.fileExists = (file) => file === name || fileExists(file);
  host.getSourceFile = (file, ...rest) =>
    file === name
      ? ts.createSourceFile(file, text, options.target ?? ts.ScriptTarget.ES2022)
      : getSourceFile(file, ...rest);
  const program = ts.createProgram([name], withPaths, host);
  return ts.getPreEmitDiagnostics(program).map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
}

describe('the documents', () => {
  test.each(DOCUMENTS.filter((file) => blocks(file).length > 0))('the code of %s compiles', (file) => {
    expect(compile(`${blocks(file).join('\n')}\nexport {};`)).toEqual([]);
  });

  test('a block that does not compile is noticed (control)', () => {
    expect(compile("import { fencedLock } from 'prisma-extension-fenced-lock'; fencedLock({ redis: 1 });")).not.toEqual(
      [],
    );
  });

  test.each(DOCUMENTS)('the links of %s lead somewhere', (file) => {
    const targets = [...read(file).matchAll(/\]\((?!https?:)([^)#]+)(#[^)]*)?\)/g)].map((match) => match[1] ?? '');
    const broken = targets.filter(
      (target) =>
        !ts.sys.fileExists(join(ROOT, file, '..', target)) && !ts.sys.directoryExists(join(ROOT, file, '..', target)),
    );
    expect(broken).toEqual([]);
  });

  test('every error has a section, and its message leads there', () => {
    const sections = [...read('docs/errors.md').matchAll(/^## (\w+)$/gm)].map((match) => match[1]);
    const codes = [
      new everything.LockTimeoutError('k', '1 ms'),
      new everything.LockUnavailableError('k', undefined),
      new everything.LockLostError('k', 'gone'),
      new everything.StaleTokenError('k', 1n, 'Stock'),
      new everything.TransactionAbortedError('k', 'it was.'),
      new everything.CommitUnknownError('k', '1', undefined),
      new everything.InsideTransactionError('it was.'),
      new everything.ReentryError('k'),
      new everything.NestedError('k', 'l'),
      new everything.ClosedError('it was.'),
      new everything.NotInstalledError(undefined),
      new everything.InvalidOptionError('key', 'is bad.'),
    ].map((error) => {
      const section = error.code.toLowerCase();
      expect(error.message).toContain(`docs/errors.md#${section}`);
      return section;
    });
    expect(sections).toEqual(expect.arrayContaining(codes));
    expect(codes).toEqual(expect.arrayContaining(sections));
  });

  test('the README states the defaults that are in force', () => {
    const table = read('README.md').replaceAll(/(\d) (\d{3})/g, '$1_$2');
    for (const [name, value] of Object.entries(DEFAULTS)) {
      const shown = typeof value === 'number' ? String(value).replace(/(\d)(\d{3})$/, '$1_$2') : String(value);
      expect(table, name).toMatch(new RegExp(`\`${name}\`[^\\n]*${shown}`));
    }
  });

  test('the tree of the architecture names every file of src/, and no other', () => {
    const tree = /^src\/\n([\s\S]*?)^lua\//m.exec(read('docs/architecture.md'))?.[1] ?? '';
    const named: string[] = [];
    let folder = '';
    for (const line of tree.split('\n').filter((line) => line.trim() !== '')) {
      const name = line.trim().split(/\s+/)[0] ?? '';
      if (name.endsWith('/')) folder = name;
      else named.push(line.startsWith('    ') ? folder + name : name);
    }
    const files = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' }).filter((file) =>
      file.endsWith('.ts'),
    );
    expect(named.toSorted()).toEqual(files.toSorted());
  });
});
