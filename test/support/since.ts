import { inject } from 'vitest';

/** Why the shared server cannot do what came with a later PostgreSQL; undefined if it can. */
export function since(major: number, what: string): string | undefined {
  const { version } = inject('postgres');
  return Number.parseInt(version, 10) >= major ? undefined : `PostgreSQL ${version} has no ${what}, ${major} has`;
}
