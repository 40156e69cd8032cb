/** What is to run in a container. */
interface Image {
  readonly name: string;
  readonly command: string[];
  readonly port: number;
  readonly env?: Record<string, string>;
  /** What it logs when it is ready, and how often. */
  readonly ready: readonly [line: string, times: number];
}

/**
 * Starts it. Ends with this process. `undefined` where the package that does it is not installed, or Docker does not answer.
 */
export async function startImage({ name, command, port, env = {}, ready }: Image) {
  const testcontainers = await import('testcontainers').catch(() => undefined);
  if (testcontainers === undefined) return undefined;
  const { GenericContainer, Wait, getContainerRuntimeClient } = testcontainers;
  if ((await getContainerRuntimeClient().catch(() => undefined)) === undefined) return undefined;
  const container = await new GenericContainer(name)
    .withEnvironment(env)
    .withCommand(command)
    .withExposedPorts(port)
    .withWaitStrategy(Wait.forLogMessage(...ready))
    .start();
  let stopping: Promise<unknown> | undefined;
  return {
    address: `${container.getHost()}:${container.getMappedPort(port)}`,
    async stop() {
      stopping ??= container.stop();
      await stopping;
    },
  };
}
