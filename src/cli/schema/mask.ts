import { Problem } from '../problem.js';

const COMMENT_OR_STRING = /\/\/[^\n]*|\/\*[\s\S]*?\*\/|"(?:\\.|[^"\\\n])*"/g;

/**
 * The schema with comments and string contents replaced by blanks. All offsets stay valid, and a match is always code.
 */
export function masked(text: string): string {
  return text.replace(COMMENT_OR_STRING, (part) => {
    const blank = part.replaceAll(/[^\r\n]/g, ' ');
    return part.startsWith('"') ? `"${blank.slice(1, -1)}"` : blank;
  });
}

/** What a string of the schema stands for. It has the escape sequences of JSON. */
export function unescaped(content: string): string {
  try {
    return JSON.parse(`"${content}"`) as string;
  } catch (cause) {
    throw new Problem(`The string "${content}" of the schema cannot be read: Prisma refuses it, too.`, { cause });
  }
}
