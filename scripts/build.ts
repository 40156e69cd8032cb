// dist/ is ESM, dist/cjs/ the same as CommonJS; each with its types.
import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';

// A file that src/ no longer has would be published.
rmSync('dist', { recursive: true, force: true });
for (const project of ['tsconfig.build.json', 'tsconfig.cjs.json']) {
  execFileSync(process.execPath, ['node_modules/typescript/bin/tsc', '-p', project], { stdio: 'inherit' });
}
// The package itself says `module`.
writeFileSync('dist/cjs/package.json', '{ "type": "commonjs" }\n');
