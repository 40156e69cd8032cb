import type { Socket } from 'node:net';

/** Ends a connection by RST where that is possible: while its orderly end is under way, a reset fails and leaks it. */
export function breakOff(socket: Socket): void {
  if (socket.writableEnded && !socket.writableFinished) socket.destroy();
  else socket.resetAndDestroy();
}
