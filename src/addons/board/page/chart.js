// Charts, drawn as SVG. Positions are attributes: the page allows no inline style.

import { BARS } from './state.js';
import { counted, duration, number } from './text.js';

const SVG = 'http://www.w3.org/2000/svg';

/**
 * @param {string} tag
 * @param {Record<string, string | number>} attributes
 * @param {...(Node | string)} children
 */
function svg(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}

/** The turns of a key as bars, and how many processes waited as a line. */
export class HeatChart {
  #width;
  #height;
  #bars = svg('path', { class: 'turns-bars' });
  #line = svg('path', { class: 'waiting-line' });
  #drawn = '';

  /**
   * @param {number} width
   * @param {number} height
   */
  constructor(width, height) {
    this.#width = width;
    this.#height = height;
    const viewBox = `0 0 ${width} ${height}`;
    this.svg = svg('svg', { class: 'spark', role: 'img', width, height, viewBox, preserveAspectRatio: 'none' });
    this.svg.append(this.#bars, this.#line);
  }

  /**
   * @param {{ turnBars: number[], waitingBars: number[], total: number }} key
   * @param {number} mostTurns in a bar of any chart beside it: all have one scale
   * @param {number} mostWaiting
   */
  draw({ turnBars, waitingBars, total }, mostTurns, mostWaiting) {
    const drawn = `${mostTurns} ${mostWaiting} ${turnBars} ${waitingBars}`;
    if (drawn === this.#drawn) return;
    this.#drawn = drawn;
    const step = this.#width / BARS;
    let bars = '';
    turnBars.forEach((turns, at) => {
      if (turns === 0) return;
      // By the square root: a key with few turns is seen beside one with many.
      const height = Math.max(1.5, Math.sqrt(turns / mostTurns) * (this.#height - 2));
      bars += `M${round(at * step)} ${this.#height}v${round(-height)}h${round(step * 0.75)}v${round(height)}z`;
    });
    this.#bars.setAttribute('d', bars);
    this.#line.setAttribute('d', this.#lineOf(waitingBars, mostWaiting));
    const most = waitingBars.reduce((highest, count) => Math.max(highest, count), 0);
    const label = `${counted(total, 'turn', 'turns')} in five minutes, at most ${counted(most, 'process', 'processes')} waiting`;
    this.svg.setAttribute('aria-label', label);
  }

  /**
   * Only where somebody waited.
   *
   * @param {number[]} waiting
   * @param {number} most
   */
  #lineOf(waiting, most) {
    const step = this.#width / BARS;
    let line = '';
    waiting.forEach((count, at) => {
      if (count === 0) return;
      const y = round(this.#height - 1 - Math.sqrt(count / most) * (this.#height - 3));
      const goesOn = (waiting[at - 1] ?? 0) > 0;
      line += `${goesOn ? 'L' : 'M'}${round(at * step)} ${y}H${round((at + 1) * step)}`;
    });
    return line;
  }
}

/** @param {number} value */
function round(value) {
  return Math.round(value * 10) / 10;
}

/**
 * How long callers waited: a column for each time, which begins where the one before it ends.
 *
 * @param {{ bounds: number[], counts: number[], longest: number }} waits
 */
export function histogram({ bounds, counts, longest }) {
  const [width, height, foot] = [306, 96, 20];
  const total = counts.reduce((sum, count) => sum + count, 0);
  const most = Math.max(1, ...counts);
  const step = width / counts.length;
  const label = `${counted(total, 'wait', 'waits')}, half of them ${medianOf(bounds, counts, total)}, the longest ${duration(longest)}`;
  const chart = svg('svg', {
    role: 'img',
    width: '100%',
    viewBox: `0 0 ${width} ${height + foot}`,
    'aria-label': label,
  });
  counts.forEach((count, at) => {
    const tall = count === 0 ? 0 : Math.max(2, (count / most) * (height - 2));
    const [x, y] = [round(at * step + 1), round(height - tall)];
    chart.append(svg('rect', { class: 'turns-bars', x, y, width: round(step - 2), height: round(tall), rx: 1 }));
  });
  chart.append(svg('path', { class: 'axis', d: `M0 ${height}.5H${width}` }));
  bounds.forEach((bound, at) => {
    if (!/^10*$/.test(String(bound))) return;
    const x = round((at + 1) * step);
    const text = bound < 1_000 ? `${bound} ms` : `${bound / 1_000} s`;
    chart.append(svg('path', { class: 'axis', d: `M${x} ${height}v4` }));
    chart.append(svg('text', { x, y: height + 17, 'text-anchor': 'middle' }, text));
  });
  return { chart, label, total };
}

/**
 * @param {number[]} bounds
 * @param {number[]} counts
 * @param {number} total
 */
function medianOf(bounds, counts, total) {
  let seen = 0;
  const at = counts.findIndex((count) => {
    seen += count;
    return seen * 2 >= total;
  });
  const bound = bounds[at];
  return bound === undefined ? `above ${duration(bounds.at(-1) ?? 0)}` : `at most ${number(bound)} ms`;
}
