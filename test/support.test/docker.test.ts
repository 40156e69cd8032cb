import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { dockerAnswers } from '../support/servers/index.js';

const socket = join(tmpdir(), `fenced-lock-docker-${process.pid}.sock`);

afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(socket, { force: true });
});

test.each([
  { daemon: 'answers', status: 200, there: true },
  { daemon: 'has an error', status: 500, there: false },
  { daemon: 'says nothing', status: undefined, there: false },
])('a Docker daemon that $daemon is there: $there', async ({ status, there }) => {
  const daemon = createServer((request, response) => {
    if (status !== undefined) response.writeHead(request.url === '/_ping' ? status : 404).end('OK');
  });
  await once(daemon.listen(socket), 'listening');
  vi.stubEnv('DOCKER_HOST', `unix://${socket}`);
  expect(await dockerAnswers()).toBe(there);
  daemon.closeAllConnections();
  daemon.close();
});

test('a port where nobody listens is no Docker', async () => {
  vi.stubEnv('DOCKER_HOST', 'tcp://127.0.0.1:1');
  expect(await dockerAnswers()).toBe(false);
});
