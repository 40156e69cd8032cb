/** A text over several lines, broken between its words. What does not fit into `most` lines is cut off, and ends in dots. */
export function wrapped(text: string, width: number, most: number): readonly string[] {
  const lines: string[] = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? '';
    const longer = line === '' ? word : `${line} ${word}`;
    if (longer.length <= width) {
      lines[lines.length - 1] = longer;
      continue;
    }
    // A word that no line has room for is broken as it comes.
    const parts = word.match(new RegExp(`.{1,${Math.max(1, width)}}`, 'gsu')) ?? [];
    lines.splice(line === '' ? -1 : lines.length, 1, ...parts);
  }
  if (lines.length <= most) return lines;
  const last = lines[most - 1] ?? '';
  const dotted = last.length + 4 <= width ? `${last} ...` : `${last.slice(0, Math.max(0, width - 3))}...`;
  return [...lines.slice(0, most - 1), dotted];
}
