import { createTwoFilesPatch, FILE_HEADERS_ONLY } from 'diff';

/** A unified diff of two versions of a file; empty if they are equal. If `before` is undefined, the file is new. */
export function difference(path: string, before: string | undefined, after: string): string {
  if (before === after) return '';
  const from = before === undefined ? '/dev/null' : `a/${path}`;
  const options = { context: 3, headerOptions: FILE_HEADERS_ONLY };
  // Without carriage returns, which would garble a terminal.
  const [one, other] = [before ?? '', after].map((text) => text.replaceAll('\r\n', '\n')) as [string, string];
  return createTwoFilesPatch(from, `b/${path}`, one, other, undefined, undefined, options).replace(/\n$/, '');
}
