interface Releasable {
  release(): Promise<void>;
}

/** The handles of one client that have not been released. */
export class OpenHandles {
  readonly #open = new Set<Releasable>();

  add<Handle extends Releasable>(handle: Handle): Handle {
    this.#open.add(handle);
    return handle;
  }

  delete(handle: Releasable): void {
    this.#open.delete(handle);
  }

  async releaseAll(): Promise<void> {
    await Promise.all([...this.#open].map((handle) => handle.release()));
  }
}
