import { afterEach, beforeEach, expect, test } from 'vitest';
import { startWorker, type Worker } from '../support/worker.js';

let worker: Worker;

beforeEach(async () => {
  worker = startWorker(new URL('fixtures/worker.ts', import.meta.url), ['argument'], { FIXTURE: 'variable' });
  await worker.next('ready');
});
afterEach(async () => {
  await worker.kill();
});

test('a worker gets its arguments, its environment and what is sent, and answers', async () => {
  worker.send({ type: 'hello' });
  expect(await worker.next('echo')).toEqual({
    type: 'echo',
    argument: 'argument',
    variable: 'variable',
    heard: { type: 'hello' },
  });
});

test('messages of another type wait for those who want them', async () => {
  worker.send({ type: 'first' });
  worker.send({ type: 'second' });
  await worker.next('tick');
  expect(await worker.next('echo')).toMatchObject({ heard: { type: 'first' } });
  expect(await worker.next('echo')).toMatchObject({ heard: { type: 'second' } });
});

test('frozen it says nothing; thawed it answers what was sent meanwhile', async () => {
  worker.freeze();
  worker.send({ type: 'hello' });
  await expect(worker.next('echo', { within: 200 })).rejects.toThrow("no 'echo'");
  worker.thaw();
  expect(await worker.next('echo')).toMatchObject({ heard: { type: 'hello' } });
});

test('one that ends tells how, and those who wait for its messages', async () => {
  const never = expect(worker.next('never')).rejects.toThrow('the worker ended');
  worker.send({ type: 'leave', code: 3 });
  expect(await worker.exited).toEqual({ code: 3, signal: null });
  await never;
});

test('kill and stop end it, even if it is frozen', async () => {
  worker.freeze();
  expect(await worker.stop()).toEqual({ code: null, signal: 'SIGTERM' });
  expect(await worker.kill()).toEqual({ code: null, signal: 'SIGTERM' });
});
