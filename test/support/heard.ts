import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterAll } from 'vitest';
import type { LockTracingChannels } from '../../src/index.js';

type Name = keyof LockTracingChannels;
type Part = 'start' | 'end' | 'asyncStart' | 'asyncEnd' | 'error';

/** Something that was published: of what, which part, and the message. */
export interface Heard {
  readonly name: Name;
  readonly part: Part;
  readonly message: LockTracingChannels[Name];
}

const NAMES: readonly Name[] = [
  'fenced-lock:lock',
  'fenced-lock:wait',
  'fenced-lock:hold',
  'fenced-lock:transaction',
  'fenced-lock:admission',
  'fenced-lock:work',
  'fenced-lock:commit',
];
const PARTS: readonly Part[] = ['start', 'end', 'asyncStart', 'asyncEnd', 'error'];

/** Listens to all tracing channels, to the end of the suite. `of`: what was published of one key, in its order. */
export function listen() {
  const heard: Heard[] = [];
  for (const name of NAMES) {
    for (const part of PARTS) {
      const hear = (message: unknown) => heard.push({ name, part, message: message as Heard['message'] });
      subscribe(`tracing:${name}:${part}`, hear);
      afterAll(() => void unsubscribe(`tracing:${name}:${part}`, hear));
    }
  }
  const callOf = ({ message }: Heard) => ('call' in message ? message.call : message);
  const of = (key: string) => heard.filter((each) => callOf(each).keys.includes(key));
  return {
    of,
    /** The messages of one channel, each once, in the order of their starts. */
    messages<N extends Name>(key: string, name: N): Array<LockTracingChannels[N]> {
      const all = of(key).filter((each) => each.name === name && each.part === 'start');
      return all.map(({ message }) => message as LockTracingChannels[N]);
    },
    /** Such as `wait:asyncEnd`, without the parts that say nothing. */
    order: (key: string) =>
      of(key)
        .filter(({ part }) => part === 'start' || part === 'asyncEnd' || part === 'error')
        .map(({ name, part }) => `${name.slice('fenced-lock:'.length)}:${part}`),
  };
}
