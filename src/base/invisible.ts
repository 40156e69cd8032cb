/**
 * Characters that a terminal or a page interprets, hides, reorders, or shows as a space. U+2800 and U+1D159 are blank, which
 * no property says.
 */
export const INVISIBLE = /(?! )[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u{2800}\u{1D159}]/gu;

export function hasInvisible(text: string): boolean {
  // Not `test`, which begins where the last one has ended.
  return text.search(INVISIBLE) !== -1;
}
