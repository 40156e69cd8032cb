interface Closable {
  close(): Promise<void>;
}

/** The handles of one client that have not been released. */
export class OpenHandles {
  readonly #open = new Set<Closable>();

  add<Handle extends Closable>(handle: Handle): Handle {
    this.#open.add(handle);
    return handle;
  }

  delete(handle: Closable): void {
    this.#open.delete(handle);
  }

  async closeAll(): Promise<void> {
    await Promise.all([...this.#open].map((handle) => handle.close()));
  }
}
