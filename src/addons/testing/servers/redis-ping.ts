import { connect } from 'node:net';

/** One inline command on a connection of its own, and the beginning of the reply. */
function ask(port: number, command: string, enough: (reply: string) => boolean): Promise<string> {
  return new Promise((resolve, reject) => {
    let reply = '';
    const socket = connect({ host: '127.0.0.1', port, timeout: 1_000 }, () => socket.write(`${command}\r\n`));
    socket.setEncoding('utf8');
    socket.on('data', (text: string) => {
      reply += text;
      if (!enough(reply)) return;
      resolve(reply);
      socket.destroy();
    });
    socket.on('timeout', () => socket.destroy(new Error(`no reply to ${command}`)));
    socket.on('error', reject);
    socket.on('close', () => reject(new Error(`connection closed before the reply to ${command}`)));
  });
}

export async function answersPing(port: number): Promise<void> {
  const reply = await ask(port, 'PING', (text) => text.includes('\r\n'));
  if (!reply.startsWith('+PONG')) throw new Error(`not ready: ${reply}`);
}

/** It must be our server: another process can have taken the port while ours is still starting. */
export async function answersFromProcess(port: number, pid: number): Promise<void> {
  await answersPing(port);
  const info = await ask(port, 'INFO server', (text) => /process_id:\d+\r\n/.test(text));
  if (!info.includes(`process_id:${pid}\r\n`)) throw new Error('another server answers');
}

export async function versionOf(url: string): Promise<string> {
  const info = String(await askServer(url, 'INFO', 'server'));
  // Valkey also says which Redis it is compatible with.
  return (/valkey_version:(\S+)/.exec(info) ?? /redis_version:(\S+)/.exec(info))?.[1] ?? 'unknown';
}

/** One command on a connection of its own; rejects soon where nobody answers. */
export async function askServer(url: string, ...words: [string, ...string[]]): Promise<unknown> {
  const { Redis } = await import('ioredis');
  const redis = new Redis(url, {
    lazyConnect: true,
    retryStrategy: () => null,
    connectTimeout: 2_000,
    commandTimeout: 2_000,
    // What the questions about topologies are written for.
    protocol: 2,
  });
  // connect() rejects with the same error.
  redis.on('error', () => {});
  try {
    await redis.connect();
    return await redis.call(...words);
  } finally {
    redis.disconnect();
  }
}
