/**
 * A proxy that passes on to an object whatever its subclass does not change. It has a target of its own: after each
 * `get`, the engine compares the value with the target's own property, and Prisma's clients, models and operations are
 * proxies that compute that property again.
 */
export abstract class Facade implements ProxyHandler<object> {
  readonly proxy: object;
  readonly #inner: object;

  constructor(inner: object) {
    this.#inner = inner;
    this.proxy = new Proxy({}, this);
  }

  /** What everything is passed on to. A subclass may choose it anew at each use. */
  protected get inner(): object {
    return this.#inner;
  }

  abstract get(target: object, property: string | symbol, receiver: unknown): unknown;

  has(_: object, property: string | symbol): boolean {
    return Reflect.has(this.inner, property);
  }

  set(_: object, property: string | symbol, value: unknown, receiver: unknown): boolean {
    return Reflect.set(this.inner, property, value, receiver);
  }

  /** Assignments arrive here, too, because the receiver is this proxy. */
  defineProperty(_: object, property: string | symbol, descriptor: PropertyDescriptor): boolean {
    return Reflect.defineProperty(this.inner, property, descriptor);
  }

  deleteProperty(_: object, property: string | symbol): boolean {
    return Reflect.deleteProperty(this.inner, property);
  }

  ownKeys(_: object): Array<string | symbol> {
    return Reflect.ownKeys(this.inner);
  }

  /** Configurable, because the target does not have it. */
  getOwnPropertyDescriptor(_: object, property: string | symbol): PropertyDescriptor | undefined {
    const descriptor = Reflect.getOwnPropertyDescriptor(this.inner, property);
    return descriptor && { ...descriptor, configurable: true };
  }

  getPrototypeOf(): object | null {
    return Reflect.getPrototypeOf(this.inner);
  }
}
