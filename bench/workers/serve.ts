import { inspect } from 'node:util';

/** What a worker can be asked to do, each with one argument. */
export type Verbs = Readonly<Record<string, (argument: never) => unknown>>;

/** A question by its number, and the number's answer. */
interface Question {
  readonly type: 'ask';
  readonly id: number;
  readonly verb: string;
  readonly argument: unknown;
}

/** Answers what this process is asked over its IPC channel, several questions at a time. */
export function serve(verbs: Verbs): void {
  process.on('message', async ({ id, verb, argument }: Question) => {
    try {
      const value = await (verbs[verb] as (argument: unknown) => unknown)(argument);
      process.send?.({ type: `answer ${id}`, value });
    } catch (error) {
      process.send?.({ type: `answer ${id}`, error: inspect(error) });
    }
  });
  // Ctrl-C reaches the whole process group; the one that started us ends us.
  process.on('SIGINT', () => {});
}
