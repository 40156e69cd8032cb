const LONGEST = 80;

/** The name of a migration, such as `add_fence_stock_order`, with the characters that Prisma uses. */
export function migrationName(what: string, models: readonly string[]): string {
  const snake = (name: string) => name.replaceAll(/([a-z\d])([A-Z])/g, '$1_$2').toLowerCase();
  const name = [what, ...models.map(snake)].join('_');
  return name.length <= LONGEST ? name : `${what}_${models.length}_models`;
}
