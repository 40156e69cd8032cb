/**
 * Prisma's value of a scalar field, from the JSON that Postgres makes of it. A value of which Prisma's type would not keep all
 * stays as it is.
 *
 * @param type as the schema names it.
 */
export function fieldValue(type: string | undefined, json: unknown): unknown {
  if (type === 'BigInt' && Number.isSafeInteger(json)) return BigInt(json as number);
  if (typeof json !== 'string') return json;
  if (type === 'DateTime' && DATE.test(json)) return new Date(/T[^+-]*$/.test(json) ? `${json}Z` : json);
  if (type === 'Bytes' && HEX.test(json)) return Uint8Array.from(Buffer.from(json.slice(2), 'hex'));
  return json;
}

/** With no more than milliseconds. Without a zone it is UTC to Prisma. */
const DATE = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d{1,3})?(?:[+-]\d\d:\d\d)?)?$/;
const HEX = /^\\x(?:[\da-f]{2})*$/;
