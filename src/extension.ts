import { Prisma } from '@prisma/client/extension';
import { assemble } from './assemble.js';
import { InvalidOptionError } from './base/errors.js';
import { makeObservable } from './call/observed.js';
import { lockClient } from './client.js';
import type { FencedLockOptions, ResolvedLockOptions, ResolvedOptions } from './options/options.js';
import { resolveLockOptions, resolveOptions } from './options/resolve.js';
import { detectOutsideWrites } from './prisma/hooks.js';
import { refuseTransactionClient } from './prisma/inside-transaction.js';
import type { PrismaInternals } from './prisma/internals.js';

/**
 * A client whose models have the field. Applying the extension to another client does not compile. Names that are only
 * known at run time are checked then.
 */
type WithFence<Model extends string, Field extends string> = string extends Model | Field
  ? unknown
  : { [M in Model as Uncapitalize<M>]: { fields: { [F in Field]: unknown } } };

/**
 * The Prisma client extension: adds `$withLock`, `$tryWithLock`, `$oncePer`, `$lock`, `$resumeLock` and `$locks`.
 *
 * @throws InvalidOptionError for an option that cannot be used, when the extension is made or applied.
 */
export function fencedLock<const Model extends string = never, const Field extends string = 'fence'>(
  options: FencedLockOptions & {
    readonly models?: readonly Model[] | undefined;
    readonly fenceField?: Field | undefined;
  },
) {
  const extension = extensionOf(resolveOptions(options));
  return extension as (client: WithFence<Model, Field>) => ReturnType<typeof extension>;
}

function extensionOf(resolved: ResolvedOptions) {
  return Prisma.defineExtension((client) => {
    const base = client as unknown as PrismaInternals;
    const { databaseOf, observed, ...ports } = assemble(base, resolved);
    const database = databaseOf(base);
    const { isolationLevel } = base._engineConfig.transactionOptions ?? {};
    const defaults: ResolvedLockOptions = {
      ...resolved.defaults,
      isolationLevel: resolved.defaults.isolationLevel ?? isolationLevel,
    };
    let own: unknown;
    const { methods } = lockClient(resolved, {
      ...ports,
      database,
      calledOn(self, method, key) {
        const outermost = Prisma.getExtensionContext(self) as unknown as PrismaInternals | undefined;
        if (outermost === undefined) {
          throw new InvalidOptionError('this', `must be the client: call it as \`prisma.${method}(…)\`.`);
        }
        if (typeof outermost.$extends !== 'function') refuseTransactionClient(method, key);
        // Begin the transaction on the base client: the layer of this extension has no use inside a transaction and would
        // only cost time.
        return { client: outermost, database: outermost === own ? database : databaseOf(outermost) };
      },
      resolve: (given) => resolveLockOptions(given, defaults),
      disconnect: () => base.$disconnect(),
    });
    const extended = client.$extends({
      name: 'fenced-lock',
      query: detectOutsideWrites(base),
      client: methods,
    });
    makeObservable(extended.$locks, observed);
    own = extended;
    return extended;
  });
}
