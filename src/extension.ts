import { Prisma } from '@prisma/client/extension';
import { assembleLocks } from './assemble.js';
import { ensure, nearest } from './base/checks.js';
import { InvalidOptionError } from './base/errors.js';
import { makeObservable } from './call/observed.js';
import { lockClient } from './client.js';
import { Rescue } from './connection/rescue.js';
import { Fencing } from './fencing/fencing.js';
import { DEFAULTS, type FencedLockOptions, type ResolvedLockOptions, type ResolvedOptions } from './options/options.js';
import { resolveLockOptions, resolveOptions } from './options/resolve.js';
import { fenceFactory } from './prisma/adapter.js';
import { rejectSkipped } from './prisma/batches.js';
import { checkClient } from './prisma/client.js';
import { detectOutsideWrites } from './prisma/hooks.js';
import { refuseTransactionClient } from './prisma/inside-transaction.js';
import type { PrismaInternals } from './prisma/internals.js';
import { declarationsOf, modelsOf } from './prisma/models.js';
import { connectionsOf, rescueFactory } from './prisma/rescue.js';
import { prismaDatabases } from './prisma/transactions.js';

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

/** Creates what the locks of one Prisma client stand on. Opens no connection. */
function assemble(client: PrismaInternals, options: ResolvedOptions) {
  const adapter = checkClient(client);
  fenceFactory(adapter);
  rejectSkipped(client);
  const open = connectionsOf(options.rescue ?? rescueFactory(adapter));
  const rescue = new Rescue(open);
  // A connection of its own: looks, such as those of a board, must not keep an outcome waiting.
  const lookout = new Rescue(open);
  return {
    ...assembleLocks(options, lookout.query),
    fencing: fencingOf(client, options),
    databaseOf: prismaDatabases(rescue.query),
    close(): void {
      rescue.close();
      lookout.close();
    },
  };
}

function fencingOf(client: PrismaInternals, { fenceField, models }: ResolvedOptions): Fencing {
  const schema = client._runtimeDataModel.models;
  const names = Object.keys(schema);
  const withField = names.filter((model) =>
    schema[model]?.fields.some(({ name, type }) => name === fenceField && type === 'BigInt'),
  );
  for (const model of models ?? []) {
    const meant = nearest(model, names);
    const hint = meant === undefined ? '' : ` Did you mean ${meant}?`;
    ensure(names.includes(model), 'models', `names ${model}, which the schema does not have.${hint}`);
    const missing = `which has no field \`${fenceField} BigInt @default(0)\`: npx fenced-lock add-fence ${model}.`;
    ensure(withField.includes(model), 'models', `names ${model}, ${missing}`);
  }
  const isUsed = fenceField === DEFAULTS.fenceField || withField.length > 0;
  ensure(isUsed, 'fenceField', `is ${fenceField}, which no model has as a field of type BigInt.`);
  const fenced = models ?? withField;
  const declared = declarationsOf(client);
  for (const model of fenced) checkFence(model, fenceField, declared(model, fenceField), models !== undefined);
  return new Fencing(fenceField, new Set(fenced), modelsOf(client));
}

/** @param isNamed whether the application says that it is one. Otherwise it is found by its name and its type. */
function checkFence(model: string, field: string, declared: string | undefined, isNamed: boolean): void {
  // The schema of this client is not known.
  if (declared === undefined) return;
  const right = `\`${field} BigInt @default(0)\``;
  ensure(
    !/^\w+(?:\?|\[\])/.test(declared),
    `${model}.${field}`,
    `may be NULL, or is a list: writes would pass over rows without a fence. Set the NULLs to 0, and make it ${right}.`,
  );
  ensure(
    isNamed || declared.includes('@default'),
    `${model}.${field}`,
    'has no default, so it may be a field of the application, whose values a lock would overwrite. If it is the fence, ' +
      `make it ${right}. If it is not, name the fenced models in \`models\`, or another \`fenceField\`.`,
  );
}
