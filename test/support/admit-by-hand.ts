import { escapeLiteral } from 'pg';

/** What `fenced_lock.admit` is asked for; `null` and what is missing go out as NULL. */
export interface ByHand {
  readonly keys?: readonly string[] | undefined;
  readonly holders?: readonly string[] | undefined;
  readonly attempt?: string | undefined;
  readonly leaseTime?: number | undefined;
  readonly workTime?: number | undefined;
  readonly waitTime?: number | undefined;
  readonly room?: number | undefined;
  readonly tokens?: readonly string[] | undefined;
  readonly successors?: readonly string[] | undefined;
  readonly durable?: boolean | undefined;
}

const ID = '00000000-0000-4000-8000-000000000000';

/** The statement of an admission as text, with something else in it. */
export function admitByHand(more: ByHand = {}): string {
  const times = { leaseTime: 30_000, workTime: 30_000, waitTime: 1_000 };
  const { keys, holders, attempt, leaseTime, workTime, waitTime, room, tokens, successors, durable }: ByHand = {
    keys: ['stock:1'],
    holders: (more.keys ?? ['stock:1']).map(() => ID),
    attempt: ID,
    ...times,
    ...more,
  };
  const args = [
    array(keys, 'text'),
    array(holders, 'uuid'),
    value(attempt, 'uuid'),
    ...[leaseTime, workTime, waitTime, room].map((ms) => value(ms, 'integer')),
    array(tokens, 'bigint'),
    array(successors, 'uuid'),
    value(durable, 'boolean'),
  ];
  return `SELECT fenced_lock.admit(${args.join(', ')}) AS answer`;
}

/** The tokens in its answer. */
export function tokensOf(answer: string): readonly string[] {
  return answer.split(' ').slice(4);
}

function value(given: unknown, type: string): string {
  return given === undefined
    ? `NULL::pg_catalog.${TYPES[type] ?? type}`
    : `${escapeLiteral(String(given))}::pg_catalog.${TYPES[type] ?? type}`;
}

function array(given: readonly string[] | undefined, type: string): string {
  const of = `pg_catalog.${TYPES[type] ?? type}`;
  return given === undefined ? `NULL::${of}[]` : `ARRAY[${given.map((one) => escapeLiteral(one)).join(', ')}]::${of}[]`;
}

/** What they are called in the catalog. */
const TYPES: Readonly<Record<string, string>> = { integer: 'int4', bigint: 'int8', boolean: 'bool' };
