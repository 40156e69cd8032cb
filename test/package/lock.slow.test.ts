import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

test('npm ci warns of no package that asks for a later Node than this one', () => {
  // What asks for a later Node and runs on this one too is listed in docs/decisions/0008: its `engines` is not in the lock file.
  const npm = 'npm ci --dry-run --offline --ignore-scripts --no-audit --no-fund 2>&1';
  const said = execFileSync(npm, { shell: '/bin/sh', cwd: fileURLToPath(new URL('../../', import.meta.url)) });
  expect(String(said)).not.toContain('EBADENGINE');
});
