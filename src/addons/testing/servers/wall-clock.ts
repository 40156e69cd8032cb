/** The wall clock of one server, which goes on over its restarts. */
export interface WallClock {
  /** What the server is started with. */
  readonly env: Readonly<Record<string, string>>;
  /** As if somebody had set it: so many milliseconds ahead of the true time, or behind it if below 0. Whole seconds. */
  move(ms: number): void;
}

/** Makes one in the directory of its server. */
export type MakeClock = (dir: string) => Promise<WallClock>;

/** The true time. */
export const trueTime: MakeClock = async () => ({
  env: {},
  move() {
    throw new Error('The server was started without a clock that can be moved.');
  },
});
