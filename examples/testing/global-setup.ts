import { setUpTestServers } from 'prisma-extension-fenced-lock/testing';

/** Of Vitest and of Jest. */
export default () => setUpTestServers();
