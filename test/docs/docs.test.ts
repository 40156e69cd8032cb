import { readdirSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import ts from 'typescript';
import { describe, expect, test } from 'vitest';
import { CALL_DEFAULTS, DEFAULTS } from '../../src/options/options.js';
import { blocks, ROOT, read } from './page.js';

function markdown(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.md'))
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)));
}

const DOCUMENTS = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', ...['docs', 'examples', 'skills'].flatMap(markdown)];
/** Where the links of a page lead, from the root, and to which of its sections. */
function links(file: string): { target: string; section: string }[] {
  return [...read(file).matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g)].map(([, target = '', section = '']) => ({
    target: target === '' ? file : join(dirname(file), target),
    section,
  }));
}

/** The names that GitHub gives to the headings of a page. */
const sections = (file: string) =>
  [...read(file).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-'),
  );

/** What npm packs: what `files` names, and these by itself. */
const PACKED: string[] = ['README.md', 'LICENSE', 'package.json', ...JSON.parse(read('package.json')).files];
const isPacked = (file: string) => PACKED.some((packed) => file === packed || file.startsWith(`${packed}/`));
/** Of the project itself, for readers who have the repository. */
const OF_THE_PROJECT = ['CHANGELOG.md', 'docs/decisions/0008-libraries-of-development.md'];

/** Packages that guides use and this project does not install, as far as the guides use them. */
const GUESTS = `
declare module 'express' {
  import type { RequestListener, Server, ServerResponse } from 'node:http';
  export interface Request { readonly params: { id: string } }
  export interface Response extends ServerResponse {
    json(body: unknown): this;
    status(code: number): this;
    set(name: string, value: string): this;
  }
  export type NextFunction = (error?: unknown) => void;
  interface Application {
    post(path: string, handler: (request: Request, response: Response) => Promise<void>): void;
    use(path: string, handler: RequestListener): void;
    use(handler: (error: unknown, request: Request, response: Response, next: NextFunction) => void): void;
    listen(port: number): Server;
  }
  export default function express(): Application;
}
declare function test(name: string, fn: () => Promise<void>): void;
declare function expect(value: unknown): Matchers<void> & { readonly rejects: Matchers<Promise<void>> };
interface Matchers<R> { toMatchObject(value: object): R; toThrow(message: string): R }
`;

/** Compiled where its packages are installed: test/install/orms.test.ts. */
const OF_ORMS = 'docs/guides/other-orms.md';

/** The subpaths that are no addons. */
const FACES = ['pg', 'kysely', 'drizzle'];

/** Its reader's compiler resolves as bundlers do, without the endings of files. */
const BUNDLED = 'docs/guides/nextjs.md';

/** Their reader's compiler has the decorators of Nest. */
const DECORATED: readonly (string | undefined)[] = ['docs/guides/nestjs.md', 'docs/guides/once-per-interval.md'];

/** A framework or a platform sets the variables there. */
const HAVE_THEIR_ENVIRONMENT = ['docs/guides/nestjs.md', BUNDLED, 'docs/guides/serverless-redis.md'];

/** Files that several programs have in common, parsed once; `bundled` ones are told apart. */
const parsed = new Map<string, ts.SourceFile>();

/** Each of their blocks is a file of its own, named in its first line. */
const OF_FILES: readonly (string | undefined)[] = ['docs/guides/nestjs.md'];

/** The modules of a page, by their names. */
function modules(file: string): ReadonlyMap<string, string> {
  if (!OF_FILES.includes(file)) return new Map([['snippet.ts', `${blocks(file).join('\n')}\nexport {};`]]);
  return new Map(
    blocks(file).map((text) => [/^\/\/ (\S+\.ts)\n/.exec(text)?.[1] ?? `the name is missing: ${text}`, text]),
  );
}

/** What the compiler says of modules beside the tests' generated client. */
function compile(modules: ReadonlyMap<string, string>, file?: string): string[] {
  const { config } = ts.readConfigFile(join(ROOT, 'tsconfig.json'), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: [] }, ts.sys, ROOT);
  // A reader's own settings may be laxer than ours, as this one is in most projects.
  const lax = { noPropertyAccessFromIndexSignature: false };
  const paths = {
    'prisma-extension-fenced-lock': [join(ROOT, 'src/index.ts')],
    ...Object.fromEntries(
      FACES.map((name) => [`prisma-extension-fenced-lock/${name}`, [join(ROOT, `src/faces/${name}.ts`)]]),
    ),
    'prisma-extension-fenced-lock/*': [join(ROOT, 'src/addons/*/index.ts')],
  };
  const bundled = { module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler };
  const decorated = { experimentalDecorators: true, emitDecoratorMetadata: true };
  const withPaths = {
    ...options,
    ...lax,
    ...(file === BUNDLED && bundled),
    ...(DECORATED.includes(file) && decorated),
    paths,
  };
  const host = ts.createCompilerHost(withPaths);
  const { getSourceFile, fileExists } = host;
  const names = [...modules.keys()].map((name) => join(ROOT, 'test', name));
  const given = new Map([
    ...[...modules].map(([name, text]) => [join(ROOT, 'test', name), text] as const),
    [join(ROOT, 'test', 'guests.d.ts'), GUESTS],
  ]);
  host.fileExists = (file) => given.has(file) || fileExists(file);
  host.getSourceFile = (path, ...rest) => {
    const text = given.get(path);
    if (text !== undefined) return ts.createSourceFile(path, text, options.target ?? ts.ScriptTarget.ES2022);
    const id = `${file === BUNDLED} ${path}`;
    const source = parsed.get(id) ?? getSourceFile(path, ...rest);
    if (source !== undefined) parsed.set(id, source);
    return source;
  };
  const program = ts.createProgram([...given.keys()], withPaths, host);
  // What it imports is checked by `npm run check:types`, and its declarations are enough here.
  const found = names
    .map((name) => program.getSourceFile(name))
    .flatMap((source) => [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)]);
  return [...program.getOptionsDiagnostics(), ...program.getGlobalDiagnostics(), ...found].map(
    ({ messageText, file }) => `${file?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`,
  );
}

describe('the documents', () => {
  test.each(DOCUMENTS.filter((file) => file !== OF_ORMS && blocks(file).length > 0))(
    'the code of %s compiles',
    (file) => {
      expect(compile(modules(file), file)).toEqual([]);
      // The types of whole web frameworks are among what is compiled.
    },
    120_000,
  );

  test('a block that does not compile is noticed (control)', () => {
    const wrong = "import { fencedLock } from 'prisma-extension-fenced-lock'; fencedLock({ redis: 1 });";
    expect(compile(new Map([['snippet.ts', wrong]]))).not.toEqual([]);
  });

  test('a snippet that makes a client finds both servers by the .env of Getting started', () => {
    const clients = DOCUMENTS.filter((file) => !HAVE_THEIR_ENVIRONMENT.includes(file))
      .flatMap((file) => blocks(file).map((text) => ({ file, text })))
      .filter(({ text }) => text.includes('process.env.DATABASE_URL') && text.includes('new PrismaClient('));
    expect(clients.length).toBeGreaterThan(10);
    expect(clients.filter(({ text }) => !text.startsWith("import 'dotenv/config';\n"))).toEqual([]);
    const fixed = DOCUMENTS.filter((file) =>
      blocks(file).some((text) => /new Redis\('rediss?:\/\/localhost/.test(text)),
    );
    expect(fixed).toEqual([]);
  });

  test.each(DOCUMENTS)('the links of %s lead somewhere', (file) => {
    const broken = links(file).filter(({ target, section }) => {
      if (ts.sys.directoryExists(join(ROOT, target))) return false;
      if (!ts.sys.fileExists(join(ROOT, target))) return true;
      return section !== '' && target.endsWith('.md') && !sections(target).includes(section);
    });
    expect(broken).toEqual([]);
  });

  test.each(DOCUMENTS.filter((file) => isPacked(file) && !OF_THE_PROJECT.includes(file)))(
    'no link of %s leads out of the package',
    (file) => {
      expect(links(file).filter(({ target }) => !isPacked(target))).toEqual([]);
    },
  );

  test('docs/options.md states the defaults that are in force', () => {
    const table = read('docs/options.md').replaceAll(/(\d) (\d{3})/g, '$1_$2');
    for (const [name, value] of Object.entries({ ...CALL_DEFAULTS, ...DEFAULTS })) {
      if (value === undefined) continue;
      const shown = typeof value === 'number' ? String(value).replace(/(\d)(\d{3})$/, '$1_$2') : String(value);
      expect(table, name).toMatch(new RegExp(`\`${name}\`[^\\n]*${shown}`));
    }
  });
});
