/** The answer to SELECT. */
const NO_SUCH_DATABASE = /DB index is out of range|invalid DB index/;

/** The clients of which a warning says that they cannot connect. */
const warned = new WeakSet<object>();

/** Nobody else listens, and a caller that waits would hear of the reason only at the end of its wait time. */
export function warnOfFailure(redis: object, { message }: Error): void {
  if (warned.has(redis)) return;
  warned.add(redis);
  process.emitWarning(
    `The Redis client given as \`redis\` ${said(message)} This is said once; for each error, add redis.on('error', …).`,
    { code: 'FENCED_LOCK_REDIS' },
  );
}

function said(message: string): string {
  // ioredis goes on, in the database in which each connection begins.
  if (NO_SUCH_DATABASE.test(message)) {
    return `could not select the database of its URL: ${message}. Its locks are in database 0 instead. Correct the number in the URL.`;
  }
  return (
    `cannot connect: ${message}. It keeps trying. Until it connects, locks wait for their waitTime, or not at all if the ` +
    "login is refused, and then reject with LOCK_UNAVAILABLE, or go on without Redis if onRedisUnavailable is 'postgres'."
  );
}
