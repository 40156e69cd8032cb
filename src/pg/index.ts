export { FencedClient } from './client.js';
