/** The parts of the arguments that this package reads, which has to see what Prisma will make of them. */
const READ = new Set(['where', 'data', 'create', 'update']);

/** The arguments of an operation without what is `Prisma.skip`, and an own `__proto__`, which Prisma leaves out. */
export function asPrismaReads(args: unknown, depth = 0): unknown {
  if (Array.isArray(args)) return args.map((each) => asPrismaReads(each, depth));
  if (args === null || typeof args !== 'object' || Object.getPrototypeOf(args) !== Object.prototype) return args;
  const kept: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(args)) {
    // An assignment of `__proto__` would give the copy a prototype, whose fields Prisma takes for conditions.
    if (isSkip(value) || name === '__proto__') continue;
    kept[name] = depth === 0 && READ.has(name) ? asPrismaReads(value, 1) : value;
  }
  return kept;
}

/** Known by its method: there is a class of it in each copy of Prisma's runtime. */
function isSkip(value: unknown): boolean {
  return typeof (value as { readonly ifUndefined?: unknown } | null | undefined)?.ifUndefined === 'function';
}
