import { InvalidOptionError, quoted } from '../../base/errors.js';

/** What a placeholder may become a part of a key from. */
export type KeyPart = string | number | bigint;

/** What a function of the method's arguments gives: one key or several. */
export type LockKey = string | readonly string[];

/**
 * What names the keys of a method: a key, which may have placeholders such as `{0}` for its first argument or `{0.id}` for
 * a property of that; several; or a function of the arguments.
 */
export type KeyOf = LockKey | ((...args: never[]) => LockKey);

/** The arguments that a key can be made of, as a bound for those of the method. `never`: a template has other braces. */
export type ArgsOf<Key> = Key extends (...args: infer Params) => unknown
  ? number extends Params['length']
    ? Params
    : [...Params, ...unknown[]]
  : Key extends string
    ? unknown[] & PlacesOf<Key>
    : Key extends readonly string[]
      ? unknown[] & PlacesOf<Key[number]>
      : never;

/**
 * `unknown` for arguments that were inferred, and for a key that needs none. Where those of the method are not within the bound,
 * TypeScript takes the bound itself for them, and would accept a method with fewer arguments.
 */
export type Inferred<Args, Bound> = [Bound] extends [Args]
  ? [] extends Bound
    ? unknown
    : { readonly 'the key cannot be made of the arguments of the method': never }
  : unknown;

/** What the placeholders of a template, or of all of several, are found in. */
type PlacesOf<Template extends string> = (
  Template extends string
    ? (places: PlacesOfOne<Template>) => void
    : never
) extends (places: infer All) => void
  ? All
  : never;

type PlacesOfOne<Template extends string> = Template extends `${infer Before}{${infer Rest}`
  ? Before extends `${string}}${string}` | `${string}$`
    ? never
    : Rest extends `${infer Path}}${infer After}`
      ? Path extends `${bigint}` | `${bigint}.${string}`
        ? PlaceOf<Path> & PlacesOfOne<After>
        : never
      : never
  : Template extends `${string}}${string}`
    ? never
    : unknown;

type PlaceOf<Path extends string> = Path extends `${infer Name}.${infer Rest}`
  ? { readonly [One in Name]: PlaceOf<Rest> }
  : { readonly [One in Path]: KeyPart };

/** A number, and names behind it. `${0}` is meant for a template literal of JavaScript. */
const PLACEHOLDER = /(?<!\$)\{((?:0|[1-9]\d*)(?:\.[^{}.]+)*)\}/g;
/** Braces with what they enclose, or a brace without its other one. */
const BRACES = /\$?\{[^{}]*\}?|\}/;

/** The way from the arguments of a call to its keys. @throws InvalidOptionError where there can be none. */
export function toKeys(key: KeyOf): (self: unknown, args: readonly unknown[]) => LockKey {
  if (typeof key === 'function') {
    // What it gives is checked by the call itself.
    return (self, args) => Reflect.apply(key, self, args);
  }
  if (typeof key === 'string') {
    checkTemplate(key);
    return (_, args) => filled(key, args);
  }
  if (Array.isArray(key) && key.length > 0 && key.every((one) => typeof one === 'string')) {
    const templates: readonly string[] = [...key];
    templates.forEach(checkTemplate);
    return (_, args) => templates.map((template) => filled(template, args));
  }
  throw new InvalidOptionError(
    'key',
    'of WithLock must be a string such as "stock:{0}", a list of them, or a function of the arguments of the method.',
  );
}

/**
 * Refuses `stock:{id}`, `stock:{ 0 }` and `stock:{0`: as a key, it would be the same one for all arguments, so calls would wait
 * for each other that have nothing to do with each other.
 */
function checkTemplate(template: string): void {
  const found = BRACES.exec(template.replace(PLACEHOLDER, '…'))?.[0];
  if (found === undefined) return;
  throw new InvalidOptionError(
    'key',
    `of WithLock is the template ${quoted(template)}, and ${quoted(found)} is no placeholder: there are {0} for the first ` +
      'argument of the method, {1} for the second, and {0.id} for a property of an argument. For a key that has braces, give a ' +
      'function of the arguments.',
  );
}

function filled(template: string, args: readonly unknown[]): string {
  return template.replace(PLACEHOLDER, (placeholder, path: string) => {
    let value: unknown = args;
    for (const name of path.split('.')) value = (value as Record<string, unknown> | null | undefined)?.[name];
    if (typeof value === 'string' || typeof value === 'bigint' || Number.isFinite(value)) return String(value);
    throw new InvalidOptionError(
      'key',
      `is the template ${quoted(template)}, and ${placeholder} is no string, finite number or bigint in the arguments of this ` +
        'call. Look at what the method was called with.',
    );
  });
}
