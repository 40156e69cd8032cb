import { readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';
import type { RedisStore } from '../../src/redis/store.js';
import { someKey } from '../waiting/actors.js';
import { claimOf } from '../waiting/claims.js';

const PAGE = readFileSync(new URL('../../docs/rights.md', import.meta.url), 'utf8');
const users = [...PAGE.matchAll(/^ACL SETUSER shop on >password (.+)$/gm)].map(([, rights = '']) => rights.split(' '));

/** The rights that docs/rights.md names, after `on >password`: on one server, and on each node of a Cluster. */
export const [RIGHTS = [], CLUSTER_RIGHTS = []] = users;
/** Those for `list` beside them. */
export const FOR_LIST = (/^\| `(\+scan)`, beside these/m.exec(PAGE)?.[1] ?? '').split(' ');

/** Those for permits beside them. */
export const FOR_PERMITS = (/^\| `([^`]+)`, beside these \| permits/m.exec(PAGE)?.[1] ?? '').split(' ');

/** What the server has refused to this user: a command, a key or a channel. */
export async function refusedTo(name: string, admin: Redis): Promise<string[]> {
  const entries = (await admin.call('ACL', 'LOG')) as string[][];
  const fields = entries.map((entry) => new Map(entry.map((field, index) => [field, entry[index + 1]])));
  const objects = fields.filter((each) => each.get('username') === name).map((each) => String(each.get('object')));
  // CLIENT SETINFO and SETNAME, by which ioredis tells its version and which of its connections this is. It does not mind.
  return objects.filter((object) => !/^client(\|setinfo|\|setname)?$/.test(object));
}

/** Everything that a store does, of which the server may refuse anything. */
export async function everything(make: () => RedisStore, listening = 0): Promise<void> {
  const [holder, contender] = [make(), make()];
  const claim = claimOf(someKey());
  const waiting = claimOf(claim.key);
  const refusal = (): undefined => {};
  await holder.acquire(claim).catch(refusal);
  const watch = await contender.watch(claim.key, () => {}).catch(refusal);
  await contender.acquire(waiting, { enter: 60_000 }).catch(refusal);
  // While somebody waits.
  await holder.inspect(claim.key, 1).catch(refusal);
  await new Promise((resolve) => setTimeout(resolve, listening));
  await holder.extend([claim]);
  await holder.hint?.(claim).catch(refusal);
  await holder.yield(claim).catch(refusal);
  await contender.acquire(waiting).catch(refusal);
  await contender.transfer(waiting, 'successor').catch(refusal);
  await holder.list().catch(refusal);
  await holder.force(claim.key, 'successor').catch(refusal);
  await holder.release(claim).catch(refusal);
  watch?.close();
  // Behind the unsubscribe on the same connection.
  await contender.watch(claim.key, () => {}).catch(refusal);
  await Promise.all([holder.close(), contender.close()]);
}
