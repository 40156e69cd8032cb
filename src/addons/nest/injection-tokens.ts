import { Inject } from '@nestjs/common';

/** Symbols of the whole process: a library may have loaded this package as CommonJS, and the application as ESM. */
const CLIENT = 'prisma-extension-fenced-lock.client';
const SERVICE = 'prisma-extension-fenced-lock.service';

const token = (kind: string, name: string | undefined): symbol =>
  Symbol.for(name === undefined ? kind : `${kind}.${name}`);

/** What the client of a FencedLockModule is injected by; `name` as in its options. */
export function getLockClientToken(name?: string): symbol {
  return token(CLIENT, name);
}

/** What the FencedLockService of a FencedLockModule is injected by; that of the module without a name by its class, too. */
export function getLockServiceToken(name?: string): symbol {
  return token(SERVICE, name);
}

/** Injects the client of a FencedLockModule. */
export function InjectLockClient(name?: string): PropertyDecorator & ParameterDecorator {
  return Inject(getLockClientToken(name));
}

/** Injects the FencedLockService of a FencedLockModule. */
export function InjectLockService(name?: string): PropertyDecorator & ParameterDecorator {
  return Inject(getLockServiceToken(name));
}
