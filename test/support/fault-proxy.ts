export * from '../../src/addons/testing/faults/fault-proxy.js';
