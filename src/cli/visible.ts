/** What a terminal would obey, hide, reorder by or show as if it were a space. */
const INVISIBLE = /(?! )[\p{C}\p{Z}]/gu;
/** Nothing in it has to be told apart from what stands around it. */
const PLAIN = /^[\p{L}\p{M}\p{N}\p{P}\p{S}]+$/u;

/** A text that others chose, on one line: as it is, or, where it could mislead, as a JSON string. */
export function visible(text: string): string {
  return PLAIN.test(text) && !/["\\]/.test(text) ? text : escapeInvisible(JSON.stringify(text));
}

/** The same JSON, with nothing in it that a terminal would obey; its own line ends stay. */
export function escapeInvisible(json: string): string {
  return json.replace(INVISIBLE, (character) =>
    character === '\n'
      ? character
      : Array.from({ length: character.length }, (_, at) => unit(character.charCodeAt(at))).join(''),
  );
}

function unit(code: number): string {
  return `\\u${code.toString(16).padStart(4, '0')}`;
}
