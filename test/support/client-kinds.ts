import { describeWithShop } from './shop.js';

/** Whether a client has extensions: without a guard, its writes are hooked below them, and otherwise at `tx`. */
export const CLIENT_KINDS = ['plain', 'extended'] as const;
export type ClientKind = (typeof CLIENT_KINDS)[number];

/** The client, for `extended` with an extension that passes each operation on as it is. */
export function ofKind<C extends object>(kind: ClientKind, client: C): C {
  if (kind === 'plain') return client;
  const pass = ({ args, query }: { args: unknown; query: (args: unknown) => unknown }) => query(args);
  return (client as { $extends(extension: object): C } & C).$extends({ query: { $allOperations: pass } });
}

/** A suite for a client of each kind. */
export function describeOfEachKind(name: string, suite: (kind: ClientKind) => void): void {
  for (const kind of CLIENT_KINDS) describeWithShop(`${name}, client: ${kind}`, () => suite(kind));
}
