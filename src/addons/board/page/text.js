// Texts. What others chose, such as a key, becomes text nodes alone: no markup is ever made of it.

/** What would be obeyed, hidden, blank, or reorder what stands beside it, as in src/base/invisible.ts; and all but a single space. */
const HIDDEN = /(?! )[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u{2800}\u{1D159}]|^ +| +$| {2,}/gu;

/**
 * An element with these properties and children.
 *
 * @param {string} tag
 * @param {Record<string, string | undefined>} [attributes]
 * @param {...(Node | string)} children
 * @returns {HTMLElement}
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/**
 * A text that others chose: isolated from the direction of what stands beside it, with everything visible that is in it.
 *
 * @param {string} text
 * @returns {HTMLElement}
 */
export function shown(text) {
  const whole = element('bdi', { class: 'key' });
  let end = 0;
  for (const match of text.matchAll(HIDDEN)) {
    if (match.index > end) whole.append(text.slice(end, match.index));
    whole.append(element('span', { class: 'escaped' }, escaped(match[0])));
    end = match.index + match[0].length;
  }
  if (end < text.length) whole.append(text.slice(end));
  return whole;
}

/**
 * The same as a text, for labels.
 *
 * @param {string} text
 */
export function shownText(text) {
  return text.replaceAll(HIDDEN, escaped);
}

/** @param {string} hidden */
function escaped(hidden) {
  if (hidden.startsWith(' ')) return '␣'.repeat(hidden.length);
  return Array.from(hidden, (character) => `U+${hex(character)}`).join(' ');
}

/** @param {string} character */
function hex(character) {
  return (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
}

/**
 * Writes it only where it is another one: nothing is laid out for nothing.
 *
 * @param {Element} place
 * @param {string} text
 */
export function write(place, text) {
  if (place.textContent !== text) place.textContent = text;
}

/** @param {number} count */
export function number(count) {
  return count.toLocaleString('en-US');
}

/**
 * `3 processes`
 *
 * @param {number} count
 * @param {string} one
 * @param {string} many
 */
export function counted(count, one, many) {
  return `${number(count)} ${count === 1 ? one : many}`;
}

/** @param {number} ms */
export function duration(ms) {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.floor((ms % 60_000) / 1_000)} s`;
  return `${Math.floor(ms / 3_600_000)} h ${Math.floor((ms % 3_600_000) / 60_000)} min`;
}

/**
 * Of the day, where the reader is.
 *
 * @param {number | string} moment
 */
export function clock(moment) {
  const date = new Date(moment);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map((part) => String(part).padStart(2, '0')).join(':');
}
