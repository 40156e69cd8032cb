/** Vitest and Jest end a test after 5 s and cannot say what it was waiting for: what waits in vain gives up before that. */
export const GIVE_UP_AFTER = 4_000;
