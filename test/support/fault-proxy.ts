export * from '../../src/testing/faults/fault-proxy.js';
