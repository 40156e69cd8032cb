// Makes the Prisma clients of the tests and examples, test/generated/*.
import { spawnSync } from 'node:child_process';

const SCHEMAS = ['prisma/schema.prisma', 'test/schema/fence.prisma', 'examples/schema.prisma'];

// `generate` needs no schema engine but looks for one, and would download it: any program that exits with 0 does.
// Never do this for `migrate` or `db push`: they would report success having done nothing.
const env = { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, PRISMA_HIDE_UPDATE_MESSAGE: '1' };
for (const schema of SCHEMAS) {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['node_modules/prisma/build/index.js', 'generate', '--schema', schema],
    { env, encoding: 'utf8' },
  );
  if (status !== 0) {
    process.stderr.write(stdout + stderr);
    process.exit(status ?? 1);
  }
}
