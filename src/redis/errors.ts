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
