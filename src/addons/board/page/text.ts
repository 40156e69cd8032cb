// Texts. What others chose, such as a key, becomes text nodes alone: no markup is ever made of it.

/** What would be obeyed, hidden, blank, or reorder what stands beside it, as in src/base/invisible.ts; and all but a single space. */
const HIDDEN = /(?! )[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u{2800}\u{1D159}]|^ +| +$| {2,}/gu;

/** The element of the page, of whatever kind. */
// biome-ignore lint/suspicious/noExplicitAny: what kind it is stands in board.html
export const byId = (id: string): any => document.getElementById(id);

/** An element with these properties and children. */
export function element(
  tag: string,
  attributes: Readonly<Record<string, string>> = {},
  ...children: (Node | string)[]
) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** A text that others chose: isolated from the direction of what stands beside it, with everything visible that is in it. */
export function shown(text: string): HTMLElement {
  const whole = element('bdi');
  let end = 0;
  for (const match of text.matchAll(HIDDEN)) {
    if (match.index > end) whole.append(text.slice(end, match.index));
    whole.append(element('span', { class: 'escaped' }, escaped(match[0])));
    end = match.index + match[0].length;
  }
  if (end < text.length) whole.append(text.slice(end));
  return whole;
}

/** The same as a text, for labels. */
export function shownText(text: string): string {
  return text.replaceAll(HIDDEN, escaped);
}

function escaped(hidden: string): string {
  if (hidden.startsWith(' ')) return '␣'.repeat(hidden.length);
  const codeOf = (character: string) => (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
  return Array.from(hidden, (character) => `U+${codeOf(character)}`).join(' ');
}

const drawn = new WeakMap<Element, string>();

/** Draws what is in a place anew only if it shows something else: nothing is laid out for nothing, and a selection stays. */
export function redraw(place: Element, shows: unknown, draw: () => (Node | string)[] = () => [String(shows)]): void {
  const text = JSON.stringify(shows);
  if (drawn.get(place) === text) return;
  drawn.set(place, text);
  place.replaceChildren(...draw());
}

export function number(count: number): string {
  return count.toLocaleString('en-US');
}

/** `3 turns` */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${number(count)} ${count === 1 ? one : many}`;
}

export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.floor((ms % 60_000) / 1_000)} s`;
  return `${Math.floor(ms / 3_600_000)} h ${Math.floor((ms % 3_600_000) / 60_000)} min`;
}

/** The time of the day, where the reader is. */
export function clock(moment: number | string): string {
  return new Date(moment).toLocaleTimeString('en-GB');
}
