/**
 * Prisma's value of a scalar field, from the JSON that Postgres makes of it; a long number is a text there. A value of which
 * Prisma's type would not keep all stays as it is.
 *
 * @param type as the schema names it.
 */
export function fieldValue(type: string | undefined, json: unknown): unknown {
  const text = String(json);
  if (type === 'BigInt' && /^-?\d+$/.test(text)) return BigInt(text);
  if (type === 'Float') return Number(text);
  if (typeof json !== 'string') return json;
  if (type === 'DateTime' && DATE.test(text)) return new Date(/T[^+-]*$/.test(text) ? `${text}Z` : text);
  if (type === 'Bytes' && HEX.test(text)) return Uint8Array.from(Buffer.from(text.slice(2), 'hex'));
  return json;
}

/** With no more than milliseconds. Without a zone it is UTC to Prisma. */
const DATE = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d{1,3})?(?:[+-]\d\d:\d\d)?)?$/;
const HEX = /^\\x(?:[\da-f]{2})*$/;
