// What ships, as the compiler makes it: tsx gives every function a name of its own, which costs time and heap.
const shipped = await import(new URL('../dist/index.js', import.meta.url).href);
export const { fencedLock } = shipped as typeof import('../src/index.js');

const shippedPg = await import(new URL('../dist/pg/index.js', import.meta.url).href);
export const { FencedClient } = shippedPg as typeof import('../src/pg/index.js');
