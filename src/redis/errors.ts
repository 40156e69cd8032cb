/**
 * A Redis error as it may be shown: ioredis hangs the command on it, with all arguments, and that of a refused login
 * holds the password.
 */
export function presentable(error: unknown): Error {
  const { name, message, code } = (error ?? {}) as { name?: unknown; message?: unknown; code?: unknown };
  const plain = new Error(typeof message === 'string' ? message : String(error));
  if (typeof name === 'string') plain.name = name;
  return typeof code === 'string' ? Object.assign(plain, { code }) : plain;
}

/** Whether the server itself said it; otherwise nobody did. */
export function isReply(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError';
}

/** A Cluster's way of saying: not here, or not now. */
export function isRedirection(error: unknown): boolean {
  return error instanceof Error && /^(MOVED|ASK|TRYAGAIN|CLUSTERDOWN) /.test(error.message);
}
