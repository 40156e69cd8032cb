import { ConfigurableModuleBuilder, type DynamicModule, type InjectionToken, type Provider } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { InvalidOptionError, quoted } from '../../base/errors.js';
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
const OPTIONS = Symbol('prisma-extension-fenced-lock.options');

export const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN } = new ConfigurableModuleBuilder<FencedLockModuleOptions>(
  {
    optionsInjectionToken: OPTIONS,
  },
)
  .setClassMethodName('forRoot')
  .setExtras<FencedLockModuleExtras>(EXTRAS, withProviders)
  .build();

/** What the clients of each application are injected by in all its modules. */
const clientsOf = onceForEach((_application: ModulesContainer) => new Map<InjectionToken, LockClient>());

/** Whether the application has another client of this token. Nest would inject the one in place of the other. */
function isTaken(application: ModulesContainer, token: InjectionToken, client: LockClient): boolean {
  const clients = clientsOf(application);
  const before = clients.get(token) ?? client;
  clients.set(token, client);
  return before !== client;
}

function sameToken(option: 'name' | 'token', given: InjectionToken): InvalidOptionError {
  const shown = quoted(typeof given === 'function' ? given.name : String(given));
  return new InvalidOptionError(
    option,
    `is ${shown} of two FencedLockModules with two clients: give each one of its own.`,
  );
}

function withoutName(): InvalidOptionError {
  return new InvalidOptionError(
    'name',
    'is missing: FencedLockModule is imported twice without one, with two clients. If the application needs one client, import ' +
      'the module once, in the root module: its providers are there in all modules. If it needs two, give one of them a name, ' +
      "such as `FencedLockModule.forRootAsync({ name: 'reports', … })`.",
  );
}

/** The client, its locks and its health, by their tokens. */
function withProviders(definition: DynamicModule, { name, isGlobal, token }: FencedLockModuleExtras): DynamicModule {
  if (name !== undefined && (typeof name !== 'string' || name === '')) {
    throw new InvalidOptionError('name', 'of FencedLockModule must be a string, or left out.');
  }
  checkToken(token);
  const client = getLockClientToken(name);
  const service = getLockServiceToken(name);
  // Under the token of the application, if it has one: a test that overrides that provider, as with a fake, overrides what the
  // service and the decorator use.
  const made = token ?? client;
  const providers: Provider[] = [
    {
      provide: made,
      inject: [MODULE_OPTIONS_TOKEN, ModulesContainer],
      useFactory: (options: FencedLockModuleOptions | undefined, application: ModulesContainer) => {
        const locking = checkModuleOptions(options);
        if (isGlobal === false) return locking;
        if (isTaken(application, client, locking)) throw name === undefined ? withoutName() : sameToken('name', name);
        if (token !== undefined && isTaken(application, token, locking)) throw sameToken('token', token);
        return locking;
      },
    },
    { provide: service, inject: [client], useFactory: (locking: LockClient) => new FencedLockService(locking) },
  ];
  const aliases: InjectionToken[] = [];
  if (made !== client) {
    providers.push({ provide: client, useExisting: made });
    aliases.push(made);
  }
  // By their classes there can be those of one client alone.
  if (name === undefined) {
    providers.push({ provide: FencedLockService, useExisting: service });
    providers.push({
      provide: FencedLockHealthIndicator,
      inject: [service],
      useFactory: (locks: FencedLockService) => new FencedLockHealthIndicator(locks),
    });
    aliases.push(FencedLockService, FencedLockHealthIndicator);
  }
  return {
    ...definition,
    global: isGlobal ?? true,
    providers: [...(definition.providers ?? []), ...providers],
    exports: [client, service, ...aliases],
  };
}
