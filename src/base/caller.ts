import { FencedLockError } from './errors.js';

/**
 * Adds the caller's frames to the stack of an error of this package that was made elsewhere, such as in a timer. To be
 * called in the `catch` of an async function that the caller awaits: V8 continues the stack over each `await`. Costs
 * nothing as long as nothing fails.
 */
export function withCaller(error: unknown): unknown {
  if (!(error instanceof FencedLockError)) return error;
  const here: { stack?: string } = {};
  Error.captureStackTrace(here, withCaller);
  const known = framesOf(error.stack);
  const frames = framesOf(here.stack).filter((frame) => !known.includes(frame));
  // Another copy of the error may be frozen, and a stack is only for people.
  if (frames.length > 0) Reflect.set(error, 'stack', [error.stack, ...frames].join('\n'));
  return error;
}

function framesOf(stack: unknown): string[] {
  return typeof stack === 'string' ? stack.split('\n').filter((line) => /^\s+at /.test(line)) : [];
}
