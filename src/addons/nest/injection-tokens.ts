import { Inject } from '@nestjs/common';

/** Symbols of the whole process: a library may have loaded this package as CommonJS, and the application as ESM. */
const token = (kind: 'client' | 'service', name = ''): symbol =>
  Symbol.for(`prisma-extension-fenced-lock.${kind}${name && `.${name}`}`);

/** What the client of a FencedLockModule is injected by; `name` as in its options. */
export const getLockClientToken = (name?: string): symbol => token('client', name);

/** What the FencedLockService of a FencedLockModule is injected by; that of the module without a name by its class, too. */
export const getLockServiceToken = (name?: string): symbol => token('service', name);

type Injection = PropertyDecorator & ParameterDecorator;

/** Injects the client of a FencedLockModule. */
export const InjectLockClient = (name?: string): Injection => Inject(getLockClientToken(name));

/** Injects the FencedLockService of a FencedLockModule. */
export const InjectLockService = (name?: string): Injection => Inject(getLockServiceToken(name));
