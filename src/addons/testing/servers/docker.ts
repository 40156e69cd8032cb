import { type RequestOptions, request } from 'node:http';
import { ServerUnavailable } from './server.js';

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

/** What is to run in a container. */
interface Image {
  readonly name: string;
  readonly command: string[];
  readonly port: number;
  readonly env?: Record<string, string>;
  /** What it logs when it is ready, and how often. */
  readonly ready: readonly [line: string, times: number];
}

/** Starts it. Ends with this process. @throws ServerUnavailable where the package that does it is not installed. */
export async function startImage({ name, command, port, env = {}, ready }: Image) {
  const { GenericContainer, Wait } = await import('testcontainers').catch((cause: unknown) => {
    const why =
      'Docker answers, and the package that starts servers in it is missing: npm install --save-dev testcontainers.';
    throw new ServerUnavailable(why, { cause });
  });
  const container = await new GenericContainer(name)
    .withEnvironment(env)
    .withCommand(command)
    .withExposedPorts(port)
    .withWaitStrategy(Wait.forLogMessage(...ready))
    .start();
  const address = `${container.getHost()}:${container.getMappedPort(port)}`;
  let stopping: Promise<unknown> | undefined;
  return {
    address,
    async stop() {
      stopping ??= container.stop();
      await stopping;
    },
  };
}
