import { randomUUID } from 'node:crypto';
import { inject } from 'vitest';
import type { Shop, ShopClient, ShopOptions } from '../support/shop.js';
import { project, type Ran } from './project.js';

export const PASSWORD = 'secret-of-locks';

/** Looks at keys that are one test's alone, on the tests' servers, from the command line. */
export class Operator {
  readonly keyPrefix: string;
  readonly #shop: Shop;

  constructor(shop: Shop, keyPrefix = `cli-${randomUUID()}:`) {
    this.#shop = shop;
    this.keyPrefix = keyPrefix;
  }

  client(options: ShopOptions = {}): ShopClient {
    // Some keys here have white space at their ends, to deceive.
    return this.#shop.client({ keyPrefix: this.keyPrefix, unsetKeyParts: 'allow', ...options }).prisma;
  }

  /** As the application's role. */
  run(...args: string[]): Promise<Ran> {
    return this.runWith({}, ...args);
  }

  runWith(env: Record<string, string>, ...args: string[]): Promise<Ran> {
    const [command = '', ...rest] = args;
    const urls = { DATABASE_URL: inject('postgres').app, REDIS_URL: inject('redis').url, ...env };
    return project({}, urls).run(command, '--key-prefix', this.keyPrefix, ...rest);
  }
}

/** Where the tests' servers are, as a command says it. */
export function asked(): { postgres: string; redis: string } {
  const postgres = new URL(inject('postgres').app);
  const redis = new URL(inject('redis').url ?? '');
  return { postgres: `${postgres.host}${postgres.pathname}`, redis: redis.host };
}

/** The lines with which a command says so. */
export function askedLines(): string {
  const { postgres, redis } = asked();
  const from = (variable: string) => `(from ${variable} in the environment)`;
  return `postgres   ${postgres} ${from('DATABASE_URL')}\nredis      ${redis} ${from('REDIS_URL')}\n`;
}

/** Letters, marks and signs that look like nothing: with them, two names look alike. */
export const BLANKS = [...'\u3164\u2800\u115F\u1160\uFFA0\u034F\uFE0F\u180B\u{E0100}\u{1D159}'];

/** What somebody may have called a key in order to deceive whoever looks at it. */
export const HOSTILE: ReadonlyArray<[what: string, key: string]> = [
  ['colours', '\u001B[31mred\u001B[0m'],
  ['one byte that begins a control sequence', '\u009B2Jgone'],
  ['more lines', 'stock:1\nUnlocked stock:2:\r  In Redis: there was no lease.'],
  ['another direction', 'stock:\u202E1:kcots'],
  ['what cannot be seen', 'stock\u200B:1\u00A0\uFEFF'],
  ['letters that look like nothing', `admin${BLANKS.join('')}`],
  ['quotes and backslashes', `"stock\\u0031"'`],
  ['braces', '}{stock}:lease'],
  ['patterns', 'st*ck?[1]\\'],
  ['spaces', ' stock  1 '],
  ['an option', '--json'],
  ['SQL', `'; DROP SCHEMA fenced_lock CASCADE; --`],
  ['names of an array', '{a,"b",NULL}'],
  ['letters beyond the first plane', '\u{E0001}库存😀'],
  ['512 bytes', 'k'.repeat(512)],
];

/** Whether it is text that a terminal shows as it stands. */
export const isHarmless = (text: string) =>
  !/(?![ \n])[\p{C}\p{Z}]/u.test(text) && !BLANKS.some((blank) => text.includes(blank));

/** A URL with another login. */
export function as(url: string, username: string): string {
  return Object.assign(new URL(url), { username, password: PASSWORD }).href;
}
