import { type RequestOptions, request } from 'node:http';
import { ServerUnavailable } from './errors.js';

/** Whether a Docker daemon answers. Asked before Testcontainers is imported, which is slow and throws without one. */
export function dockerAnswers(): Promise<boolean> {
  return new Promise((resolve) => {
    const ping = request({ ...address(), path: '/_ping', timeout: 1_000 }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    ping.on('timeout', () => ping.destroy(new Error('no answer')));
    ping.on('error', () => resolve(false));
    ping.end();
  });
}

function address(): RequestOptions {
  const host = process.env['DOCKER_HOST'];
  if (host === undefined || host === '') return { socketPath: '/var/run/docker.sock' };
  const url = new URL(host);
  return url.protocol === 'unix:' ? { socketPath: url.pathname } : { host: url.hostname, port: url.port || 2375 };
}

/** @throws ServerUnavailable where the package is not installed. */
export async function testcontainers() {
  try {
    return await import('testcontainers');
  } catch (cause) {
    const why =
      'Docker answers, and the package that starts servers in it is missing: npm install --save-dev testcontainers.';
    throw new ServerUnavailable(why, { cause });
  }
}
