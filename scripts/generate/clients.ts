import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const SCHEMAS = ['prisma/schema.prisma', 'test/schema/fence.prisma', 'examples/schema.prisma'];

/** Makes the Prisma clients of the tests and examples, test/generated/*. */
export async function generateClients(): Promise<void> {
  // `generate` needs no schema engine but looks for one, and would download it: any program that exits with 0 does.
  // Never do this for `migrate` or `db push`: they would report success having done nothing.
  const env = { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, PRISMA_HIDE_UPDATE_MESSAGE: '1' };
  await Promise.all(
    SCHEMAS.map((schema) =>
      promisify(execFile)(process.execPath, ['node_modules/prisma/build/index.js', 'generate', '--schema', schema], {
        env,
      }),
    ),
  );
}
