import { ConfigurableModuleBuilder, type DynamicModule, type InjectionToken, type Provider } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { InvalidOptionError } from '../../base/errors.js';
import { onceForEach } from '../../base/once-for-each.js';
import { checkModuleOptions, checkToken, type LockClient } from './client.js';
import { FencedLockHealthIndicator } from './health.js';
import { getLockClientToken, getLockServiceToken } from './injection-tokens.js';
import { FencedLockService } from './service.js';

/** What `forRoot` takes, and what the factory of `forRootAsync` gives. */
export interface FencedLockModuleOptions {
  /** The client: `new PrismaClient(…).$extends(fencedLock({ redis }))`. */
  readonly client: LockClient;
  /** Whether the client is disconnected when the application ends. Default: `true`. */
  readonly disconnect?: boolean | undefined;
  /** Called when the application has ended and the client is disconnected: close your Redis here. */
  readonly onClosed?: (() => unknown) | undefined;
}

/** What both take beside that, to be known before the client is made. */
export interface FencedLockModuleExtras {
  /** The name of this client, where there are several. Default: none. */
  readonly name?: string | undefined;
  /** Whether its providers are there in all modules without importing this one. Default: `true`. */
  readonly isGlobal?: boolean | undefined;
  /** What the client is injected by as well, such as your class PrismaService. */
  readonly token?: InjectionToken | undefined;
}

const EXTRAS: FencedLockModuleExtras = { name: undefined, isGlobal: true, token: undefined };

export const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN } = new ConfigurableModuleBuilder<FencedLockModuleOptions>(
  { optionsInjectionToken: Symbol('prisma-extension-fenced-lock.options') },
)
  .setClassMethodName('forRoot')
  .setExtras<FencedLockModuleExtras>(EXTRAS, withProviders)
  .build();

/** What the clients of each application are injected by in all its modules. */
const clientsOf = onceForEach((_application: ModulesContainer) => new Map<InjectionToken, LockClient>());

/** @throws InvalidOptionError where two clients have one token: Nest would inject the one in place of the other. */
function claim(application: ModulesContainer, token: InjectionToken, client: LockClient): void {
  const clients = clientsOf(application);
  if ((clients.get(token) ?? client) === client) return void clients.set(token, client);
  const isClass = typeof token === 'function';
  throw new InvalidOptionError(
    isClass ? 'token' : 'name',
    `of two FencedLockModules with two clients is the same (${isClass ? token.name : String(token)}). If the application needs one ` +
      'client, import the module once, in the root module: its providers are there in all modules. If it needs two, give one of ' +
      "them a name and a token of its own, such as `FencedLockModule.forRootAsync({ name: 'reports', … })`.",
  );
}

/** The client, its locks and its health, by their tokens. */
function withProviders(
  definition: DynamicModule,
  { name, isGlobal = true, token }: FencedLockModuleExtras,
): DynamicModule {
  if (name !== undefined && (typeof name !== 'string' || name === '')) {
    throw new InvalidOptionError('name', 'of FencedLockModule must be a string, or left out.');
  }
  checkToken(token);
  const client = getLockClientToken(name);
  const service = getLockServiceToken(name);
  // Under the token of the application, if it has one: a test that overrides that provider, as with a fake, overrides what the
  // service and the decorator use.
  const made = token ?? client;
  const provided: { readonly provide: InjectionToken; readonly [more: string]: unknown }[] = [
    {
      provide: made,
      inject: [MODULE_OPTIONS_TOKEN, ModulesContainer],
      useFactory: (options: FencedLockModuleOptions | undefined, application: ModulesContainer) => {
        const locking = checkModuleOptions(options);
        if (isGlobal) for (const each of new Set([client, made])) claim(application, each, locking);
        return locking;
      },
    },
    { provide: service, inject: [client], useFactory: (locking: LockClient) => new FencedLockService(locking) },
  ];
  if (made !== client) provided.push({ provide: client, useExisting: made });
  // By their classes there can be those of one client alone.
  if (name === undefined) {
    const useFactory = (locks: FencedLockService) => new FencedLockHealthIndicator(locks);
    provided.push({ provide: FencedLockService, useExisting: service });
    provided.push({ provide: FencedLockHealthIndicator, inject: [service], useFactory });
  }
  return {
    ...definition,
    global: isGlobal,
    providers: [...(definition.providers ?? []), ...(provided as unknown as Provider[])],
    exports: provided.map(({ provide }) => provide),
  };
}
