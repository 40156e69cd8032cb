const COMMENT_OR_STRING = /\/\/[^\n]*|\/\*[\s\S]*?\*\/|"(?:\\.|[^"\\\n])*"/g;

/**
 * The schema with comments and the insides of strings blanked, every other character at its place: what is found in it
 * is code, and its offsets are those of the real text.
 */
export function masked(text: string): string {
  return text.replace(COMMENT_OR_STRING, (part) => {
    const blank = part.replaceAll(/[^\r\n]/g, ' ');
    return part.startsWith('"') ? `"${blank.slice(1, -1)}"` : blank;
  });
}
