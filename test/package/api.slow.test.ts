import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Extractor, ExtractorConfig, ExtractorLogLevel } from '@microsoft/api-extractor';
import { afterAll, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'fenced-lock-api-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  exports: Record<string, { import?: { types: string } }>;
};
const ENTRIES = Object.entries(exports).flatMap(([name, { import: esm }]) =>
  esm === undefined ? [] : [[name === '.' ? 'index' : name.slice(2), esm.types] as const],
);

/** What an entry exports, with its types, in the form of API Extractor. */
function reportOf(entry: string, types: string): string {
  const config = ExtractorConfig.prepare({
    packageJsonFullPath: join(ROOT, 'package.json'),
    configObjectFullPath: undefined,
    configObject: {
      projectFolder: ROOT,
      mainEntryPointFilePath: join(ROOT, types),
      compiler: { tsconfigFilePath: join(ROOT, 'tsconfig.json') },
      apiReport: { enabled: true, reportFileName: entry, reportFolder: folder, reportTempFolder: join(folder, 'temp') },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      messages: {
        compilerMessageReporting: { default: { logLevel: ExtractorLogLevel.None } },
        extractorMessageReporting: { default: { logLevel: ExtractorLogLevel.None } },
        tsdocMessageReporting: { default: { logLevel: ExtractorLogLevel.None } },
      },
    },
  });
  Extractor.invoke(config, {
    localBuild: true,
    messageCallback: (message) => Object.assign(message, { handled: true }),
  });
  return readFileSync(join(folder, `${entry}.api.md`), 'utf8');
}

// A change that is meant: `npx vitest run test/package/api -u`, and a line in the changelog.
test.each(ENTRIES)(
  'the public types of %s are those that were written down',
  async (entry, types) => {
    await expect(reportOf(entry, types)).toMatchFileSnapshot(`api/${entry}.txt`);
  },
  60_000,
);

test('the package has the files that were written down, and no others', async () => {
  const packed = execFileSync('npm', ['pack', '--dry-run', '--ignore-scripts', '--json'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  const [{ files }] = JSON.parse(packed) as [{ files: { path: string }[] }];
  // Of what is built, the folders.
  const paths = files.map(({ path }) => (path.startsWith('dist/') ? `${dirname(path)}/` : path));
  await expect(`${[...new Set(paths)].sort().join('\n')}\n`).toMatchFileSnapshot('api/files.txt');
});
