import type { ExampleClient } from '../client.js';

/** The licences that were bought. No two programs may run under the same one. */
export const LICENCES = ['LIC-A', 'LIC-B', 'LIC-C'] as const;

/**
 * Runs `render` under a licence that nobody else uses meanwhile, for however many minutes. No transaction is open.
 *
 * @throws LockTimeoutError if no licence was free in time.
 */
export async function renderWithLicence<R>(
  prisma: ExampleClient,
  render: (licence: string, signal: AbortSignal) => Promise<R>,
): Promise<R> {
  const handle = await prisma.$permit('licence:render', { permits: LICENCES.length }, { waitTime: 60_000 });
  try {
    return await render(LICENCES[handle.permit] as string, handle.signal);
  } finally {
    await handle.release();
  }
}
