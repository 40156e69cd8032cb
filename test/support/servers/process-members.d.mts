export interface Group {
  /** Working directory that only these processes have. */
  readonly dir?: string | undefined;
  /** Root of the process tree, for systems without /proc. */
  readonly pid?: number | undefined;
}

export function membersOf(group: Group): number[];
export function signal(pids: readonly number[], name: NodeJS.Signals): void;
