/** Text that cannot contain a keyword: comments without nested ones, strings, quoted identifiers. */
const NOISE = /--[^\r\n]*|\/\*(?:(?!\/\*|\*\/).)*\*\/|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(\w*)\$.*?\$\1\$/gs;
const COMMENT = /\/\*(?:(?!\/\*|\*\/).)*\*\//gs;

/** The statement without comments, strings and quoted identifiers. */
export function withoutNoise(sql: string): string {
  // Block comments nest.
  return withoutInnermost(sql.replaceAll(NOISE, ' '), COMMENT);
}

/** Removes what matches, then what matches in the rest, until nothing does. */
export function withoutInnermost(sql: string, innermost: RegExp): string {
  let text = sql;
  for (let longer = ''; longer !== text; ) {
    longer = text;
    text = text.replaceAll(innermost, ' ');
  }
  return text;
}
