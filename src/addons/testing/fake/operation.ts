/** What a test runner or `JSON.stringify` asks of a value, which is no relation. */
const OF_PRINTERS: ReadonlySet<string> = new Set(['toJSON', 'asymmetricMatch', 'nodeType', 'tagName', '$$typeof']);

/** A `then` of the object that it is a property of. */
type Then = (...given: never[]) => unknown;

/**
 * An operation as Prisma makes it: `start` is called when the operation is awaited, and only once. Any other property is
 * taken for a relation of a fluent call, which is another operation.
 *
 * @param settled is called behind the result, before whoever awaits the operation goes on.
 */
export function lazily(start: () => unknown, settled: () => void | Promise<void>): PromiseLike<unknown> {
  let sent: Promise<unknown> | undefined;
  const send = () => {
    sent ??= new Promise((resolve) => {
      resolve(start());
    }).finally(settled);
    return sent;
  };
  const operation = {
    // biome-ignore lint/suspicious/noThenProperty: a promise of Prisma is such an object
    then: ((...given) => send().then(...given)) satisfies Then as PromiseLike<unknown>['then'],
    catch: ((...given) => send().catch(...given)) satisfies Then,
    finally: ((...given) => send().finally(...given)) satisfies Then,
    requestTransaction: send,
    [Symbol.toStringTag]: 'PrismaPromise',
  };
  return new Proxy(operation, {
    get(_, name) {
      if (typeof name !== 'string' || name in operation || OF_PRINTERS.has(name)) return Reflect.get(operation, name);
      return (...given: unknown[]) => lazily(() => relation(start(), name, given), settled);
    },
  });
}

function relation(of: unknown, name: string, given: readonly unknown[]): unknown {
  const method: unknown = (of as Record<string, unknown> | null | undefined)?.[name];
  if (typeof method === 'function') return Reflect.apply(method, of, given);
  throw new TypeError(
    `${name} is not a function of what the mock has returned. For a relation of a fluent call, let the mock return ` +
      `Object.assign(Promise.resolve(row), { ${name}: async () => … }).`,
  );
}
