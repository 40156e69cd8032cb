export { type MemoryStore, memoryStore } from '../../stores/memory.js';
export { type AnyClient, type FakeCall, type FakeLocks, type FakeOutcome, fakeLocks } from './fake/fake-locks.js';
export type { Next } from './fake/plan.js';
export { type FaultLines, FaultMissed, faultLines } from './faults/fault-lines.js';
export { ServerUnavailable } from './servers/server.js';
export { setUpTestServers, type TestServers, type TestServersOptions, testServers } from './servers/test-servers.js';
