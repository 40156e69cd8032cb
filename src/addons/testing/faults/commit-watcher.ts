/**
 * A message with nothing but COMMIT: a simple query, or the text of a prepared statement. Protocol: each message is a letter,
 * its length in four bytes, and texts that end with a zero.
 */
const COMMIT = /(?:Q\0\0\0.|P\0\0\0.[^\0]*\0)\s*commit(?:\s+(?:work|transaction))?\s*;?\s*\0/is;
/** The tag of the answer. Of a COMMIT that became a rollback, it is another one. */
const COMMITTED = /C\0\0\0.COMMIT\0/s;
/** Longer than any of these messages. */
const LONGEST = 256;

/** Follows one connection to Postgres, without TLS, and knows which bytes hold a COMMIT, and which the server's yes to it. */
export class CommitWatcher {
  readonly #sent = new Search(COMMIT);
  readonly #answered = new Search(COMMITTED);

  /** To be called with all bytes to the server, in order. */
  hasCommit(data: Buffer): boolean {
    return this.#sent.ends(data);
  }

  /** To be called with all bytes to the client, in order. */
  hasCommitReply(data: Buffer): boolean {
    return this.#answered.ends(data);
  }
}

/** Looks for a message, wherever the network has cut the bytes. */
class Search {
  readonly #message: RegExp;
  #before = '';

  constructor(message: RegExp) {
    this.#message = message;
  }

  /** Whether such a message ends in this piece of data. */
  ends(data: Buffer): boolean {
    const text = this.#before + data.toString('latin1');
    const found = this.#message.exec(text);
    const seen = found === null ? 0 : found.index + found[0].length;
    this.#before = text.slice(Math.max(seen, text.length - LONGEST));
    return found !== null;
  }
}
