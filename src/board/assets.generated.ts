// DO NOT EDIT: made from src/board/page by `npm run generate`.

/** The files of the page. */
export const ASSETS: { readonly [file: string]: { readonly type: string; readonly text: string } | undefined } = {
  __proto__: null as never,
  'board.css': {
    type: 'text/css; charset=utf-8',
    text: `:root {
  --page: #f5f5f3;
  --card: #ffffff;
  --raised: #f0f0ed;
  --line: #dededa;
  --text: #1d1f22;
  --muted: #5a5f66;
  --accent: #2458c5;
  --bars: #5f86db;
  --warm: #a34a00;
  --warm-line: #d9822b;
  --bad: #b3261e;
  --bad-page: #fdecea;
  --good: #17713f;
  --focus: #2458c5;
  --mono: ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace;
  color-scheme: light dark;
}

@media (prefers-color-scheme: dark) {
  :root {
    --page: #111315;
    --card: #191c1f;
    --raised: #22262a;
    --line: #2f343a;
    --text: #e9ebee;
    --muted: #a3aab3;
    --accent: #8fb4ff;
    --bars: #5b86dd;
    --warm: #f2b76b;
    --warm-line: #e39b45;
    --bad: #ff9a91;
    --bad-page: #341a18;
    --good: #7bd3a2;
    --focus: #8fb4ff;
  }
}

*,
::before,
::after {
  box-sizing: border-box;
}

html {
  background: var(--page);
  color: var(--text);
  font:
    400 15px / 1.45 system-ui,
    -apple-system,
    "Segoe UI",
    Roboto,
    "Liberation Sans",
    sans-serif;
  font-variant-numeric: tabular-nums;
  -webkit-text-size-adjust: 100%;
}

body {
  margin: 0 auto;
  max-width: 1400px;
  padding: 20px 24px 32px;
}

h1,
h2,
h3,
p,
dl,
dd,
ol,
ul {
  margin: 0;
  padding: 0;
}

ol,
ul {
  list-style: none;
}

h1 {
  font-size: 22px;
  font-weight: 650;
  letter-spacing: -0.01em;
  line-height: 1.25;
  overflow-wrap: anywhere;
}

h2 {
  font-size: 15px;
  font-weight: 650;
}

h3 {
  color: var(--muted);
  font-size: 13px;
  font-weight: 600;
}

button,
input,
select {
  background: var(--card);
  border: 1px solid var(--line);
  border-radius: 6px;
  color: inherit;
  font: inherit;
  min-height: 32px;
  padding: 3px 10px;
}

button {
  cursor: pointer;
}

button:hover:not(:disabled) {
  background: var(--raised);
}

button:disabled {
  color: var(--muted);
  cursor: default;
}

:focus-visible {
  outline: 2px solid var(--focus);
  outline-offset: 2px;
}

.hidden {
  clip-path: inset(50%);
  height: 1px;
  overflow: hidden;
  position: absolute;
  white-space: nowrap;
  width: 1px;
}

.skip {
  background: var(--card);
  border-radius: 6px;
  color: var(--accent);
  left: 16px;
  padding: 6px 12px;
  position: absolute;
  top: -60px;
}

.skip:focus {
  top: 12px;
  z-index: 1;
}

header {
  align-items: center;
  display: flex;
  flex-wrap: wrap;
  gap: 6px 16px;
  margin-bottom: 14px;
}

.link {
  color: var(--muted);
  flex: 1;
}

.link::before,
.dot::before {
  background: var(--muted);
  border-radius: 50%;
  content: "";
  display: inline-block;
  height: 8px;
  margin-right: 8px;
  vertical-align: 1px;
  width: 8px;
}

.link.live::before,
.dot.good::before {
  background: var(--good);
}

.link.old::before {
  background: var(--warm-line);
  border-radius: 0;
  rotate: 45deg;
}

.link.old {
  color: var(--warm);
}

.link.lost::before,
.dot.bad::before {
  background: var(--bad);
  border-radius: 0;
}

.dot.warning::before {
  background: var(--warm-line);
  border-radius: 0;
  rotate: 45deg;
}

.banner {
  background: var(--bad-page);
  border-left: 4px solid var(--bad);
  border-radius: 4px;
  margin-bottom: 10px;
  overflow-wrap: anywhere;
  padding: 10px 14px;
}

.banner strong {
  color: var(--bad);
}

.health {
  color: var(--muted);
  min-height: 1.45em;
  overflow-wrap: anywhere;
}

.health strong {
  color: var(--text);
  font-weight: 600;
}

.health li {
  margin-top: 4px;
}

code,
.mono {
  font-family: var(--mono);
  font-size: 0.92em;
}

.figures {
  display: grid;
  gap: 12px;
  grid-template-columns: repeat(auto-fit, minmax(150px, 1fr));
  margin: 16px 0;
}

.figures div,
.card {
  background: var(--card);
  border: 1px solid var(--line);
  border-radius: 10px;
}

.figures div {
  display: flex;
  flex-direction: column-reverse;
  padding: 10px 16px 12px;
}

.figures dt {
  color: var(--muted);
  font-size: 13px;
}

.figures dd {
  font-size: 26px;
  font-weight: 600;
  letter-spacing: -0.02em;
  line-height: 1.2;
}

.figures .warm dd {
  color: var(--warm);
}

.figures .bad dd {
  color: var(--bad);
}

.note {
  margin: -8px 0 16px;
}

.columns {
  align-items: start;
  display: grid;
  gap: 16px;
  grid-template-columns: minmax(0, 1fr) 340px;
}

.rail {
  display: grid;
  gap: 16px;
}

.card {
  min-width: 0;
  padding: 14px 16px 16px;
}

.rail h2 {
  margin-bottom: 8px;
}

.bar {
  align-items: center;
  display: flex;
  flex-wrap: wrap;
  gap: 8px 16px;
  margin-bottom: 8px;
}

.bar h2 {
  flex: 1;
}

.field {
  align-items: center;
  color: var(--muted);
  display: flex;
  font-size: 14px;
  gap: 8px;
}

.field input,
.field select {
  color: var(--text);
}

.field input {
  width: 210px;
}

::placeholder {
  color: var(--muted);
  opacity: 1;
}

table {
  border-collapse: collapse;
  table-layout: fixed;
  width: 100%;
}

th {
  border-bottom: 1px solid var(--line);
  color: var(--muted);
  font-size: 13px;
  font-weight: 500;
  padding: 6px 8px;
  text-align: left;
  white-space: nowrap;
}

td {
  border-bottom: 1px solid var(--line);
  height: 44px;
  overflow: hidden;
  padding: 4px 8px;
  text-overflow: ellipsis;
  vertical-align: middle;
  white-space: nowrap;
}

/* Room for the outline of the key that has the focus, which a cell would cut off. */
th:first-child,
td:first-child {
  padding-left: 4px;
  width: 28%;
}

th:nth-child(2) {
  width: 210px;
}

th:nth-child(4),
th:nth-child(5) {
  width: 78px;
}

th:nth-child(6) {
  width: 88px;
}

th:last-child,
td:last-child {
  padding-right: 0;
}

tbody tr:last-child td {
  border-bottom: 0;
}

.number {
  text-align: right;
}

td.idle {
  color: var(--muted);
}

td.warm {
  color: var(--warm);
  font-weight: 600;
}

.open {
  background: none;
  border: 0;
  border-radius: 4px;
  color: var(--accent);
  display: block;
  font-weight: 550;
  line-height: 26px;
  max-width: 100%;
  min-height: 28px;
  overflow: hidden;
  padding: 0 4px;
  margin-left: -4px;
  text-align: left;
  text-overflow: ellipsis;
  white-space: nowrap;
}

.open:hover {
  text-decoration: underline;
}

.open:focus-visible {
  outline-offset: -2px;
}

.key {
  unicode-bidi: isolate;
}

.escaped {
  background: var(--raised);
  border-radius: 3px;
  color: var(--warm);
  font-family: var(--mono);
  font-size: 0.85em;
  padding: 0 3px;
}

.holder {
  font-family: var(--mono);
  font-size: 13px;
}

.heat {
  align-items: center;
  display: flex;
  gap: 10px;
}

.heat span {
  color: var(--muted);
  font-size: 13px;
  min-width: 66px;
  text-align: right;
}

svg {
  display: block;
  overflow: visible;
}

svg.spark {
  border-bottom: 1px solid var(--line);
  flex: none;
}

.turns-bars {
  fill: var(--bars);
}

.waiting-line {
  fill: none;
  stroke: var(--warm-line);
  stroke-linejoin: round;
  stroke-width: 1.5;
}

.axis {
  stroke: var(--line);
}

svg text {
  fill: var(--muted);
  font-size: 12px;
}

.empty,
.quiet {
  color: var(--muted);
}

.empty {
  padding: 32px 0 24px;
  text-align: center;
}

.pager {
  align-items: center;
  display: flex;
  gap: 16px;
  justify-content: center;
  padding-top: 12px;
}

.pager[hidden] {
  display: none;
}

.pager p {
  color: var(--muted);
  min-width: 130px;
  text-align: center;
}

.feed li {
  display: grid;
  gap: 0 10px;
  grid-template-columns: 62px minmax(0, 1fr) auto;
  padding: 3px 0;
}

.feed time {
  color: var(--muted);
  font-size: 13px;
  line-height: 22px;
}

.feed li > .key {
  overflow: hidden;
  text-overflow: ellipsis;
  white-space: nowrap;
}

.feed .said {
  color: var(--muted);
  font-size: 13px;
  grid-column: 1 / -1;
  overflow-wrap: anywhere;
}

.quiet {
  font-size: 13px;
}

svg + .quiet {
  margin-top: 8px;
}

.feed li.quiet {
  display: block;
}

.feed .what {
  font-weight: 600;
}

.feed .bad .what,
.turns .bad {
  color: var(--bad);
}

.feed .good .what {
  color: var(--good);
}

.feed .event + .event {
  border-top: 1px solid var(--line);
}

.feed .event {
  padding: 6px 0;
}

.feed .event > .key {
  overflow-wrap: anywhere;
  white-space: normal;
}

.servers li {
  display: grid;
  gap: 0 10px;
  grid-template-columns: minmax(0, 1fr) auto;
  padding: 3px 0;
}

.servers .role {
  color: var(--muted);
  font-size: 13px;
  grid-column: 1 / -1;
  padding-left: 16px;
}

.servers .mono {
  overflow-wrap: anywhere;
}

footer {
  color: var(--muted);
  font-size: 13px;
  margin-top: 20px;
  max-width: 90ch;
}

dialog {
  background: var(--card);
  border: 1px solid var(--line);
  border-radius: 12px;
  box-shadow: 0 16px 48px rgb(0 0 0 / 25%);
  color: var(--text);
  max-height: calc(100dvh - 32px);
  max-width: calc(100vw - 24px);
  overflow-y: auto;
  padding: 20px 24px 24px;
  width: 620px;
}

dialog::backdrop {
  background: rgb(0 0 0 / 40%);
}

dialog .top {
  align-items: start;
  display: flex;
  gap: 16px;
  margin-bottom: 12px;
}

dialog .top h2 {
  flex: 1;
  font-size: 18px;
  min-width: 0;
  overflow-wrap: anywhere;
}

dialog dl {
  margin: 16px 0;
}

dialog dl div:not([hidden]) {
  display: grid;
  gap: 0 16px;
  grid-template-columns: 120px minmax(0, 1fr);
  padding: 3px 0;
}

dialog dt {
  color: var(--muted);
}

dialog dd {
  overflow-wrap: anywhere;
}

dialog h3 {
  margin: 14px 0 4px;
}

.turns + .quiet {
  margin-top: 8px;
}

.passed {
  display: flex;
  flex-wrap: wrap;
  gap: 4px 12px;
}

.places {
  counter-reset: place;
  display: flex;
  flex-wrap: wrap;
  gap: 4px 18px;
}

.places[hidden] {
  display: none;
}

.places li {
  counter-increment: place;
  min-width: 0;
  overflow-wrap: anywhere;
}

.places li:not(.quiet)::before {
  color: var(--muted);
  content: counter(place) "\\00a0";
}

.force {
  border-top: 1px solid var(--line);
  margin-top: 16px;
  padding-top: 16px;
}

.force p {
  margin-bottom: 12px;
  overflow-wrap: anywhere;
}

.danger {
  background: var(--bad-page);
  border-color: var(--bad);
  color: var(--bad);
  font-weight: 600;
}

.buttons {
  display: flex;
  flex-wrap: wrap;
  gap: 10px;
}

/* Old data: without colour, and in the weaker colour of text, which has enough contrast still. The servers keep theirs. */
.stale .keys,
.stale .figures,
.stale .of-keys,
.stale dialog dl,
.lost .rail {
  filter: grayscale(1);
}

.stale .figures div,
.stale .keys,
.stale .of-keys,
.lost .card {
  background: var(--raised);
  border-style: dashed;
}

.stale .figures dd,
.stale .of-keys li,
.stale tbody,
.stale tbody button,
.stale tbody .warm,
.stale dialog dd,
.lost .card li {
  color: var(--muted);
}

.stale .heat svg,
.stale dialog .spark {
  opacity: 0.5;
}

@media (width < 1240px) {
  .columns {
    grid-template-columns: minmax(0, 1fr);
  }

  .rail {
    grid-template-columns: repeat(auto-fit, minmax(min(300px, 100%), 1fr));
  }
}

/* Each row is a small card: the roles that a table has are written in its elements, because display would take them. */
@media (width < 880px) {
  body {
    padding: 14px 12px 24px;
  }

  header {
    gap: 4px 12px;
  }

  header h1 {
    flex: 1 0 60%;
  }

  .link {
    flex: 1 0 100%;
    order: 1;
  }

  .figures {
    gap: 8px;
    grid-template-columns: repeat(2, minmax(0, 1fr));
  }

  .figures div {
    padding: 8px 12px;
  }

  .figures dd {
    font-size: 22px;
  }

  .bar h2,
  .field {
    flex: 1 0 100%;
  }

  .field span {
    width: 44px;
  }

  .field input,
  .field select {
    flex: 1;
    min-height: 40px;
    min-width: 0;
  }

  button {
    min-height: 40px;
  }

  .open {
    min-height: 32px;
  }

  thead {
    clip-path: inset(50%);
    height: 1px;
    overflow: hidden;
    position: absolute;
    white-space: nowrap;
    width: 1px;
  }

  table,
  tbody {
    display: block;
  }

  tbody tr {
    border-bottom: 1px solid var(--line);
    display: grid;
    gap: 2px 12px;
    grid-template-columns: repeat(3, auto);
    justify-content: space-between;
    padding: 8px 0 10px;
  }

  tbody tr:last-child {
    border-bottom: 0;
  }

  td,
  td:first-child {
    border: 0;
    height: auto;
    min-width: 0;
    padding: 0;
    width: auto;
  }

  td:first-child {
    margin-left: -4px;
    padding-left: 4px;
  }

  td:nth-child(-n + 3) {
    grid-column: 1 / -1;
  }

  td.number {
    text-align: left;
  }

  td.number::before {
    color: var(--muted);
    content: attr(data-label) " ";
    font-size: 13px;
    font-weight: 400;
  }

  .heat {
    justify-content: space-between;
  }

  svg.spark {
    flex: 1;
    min-width: 0;
  }

  dialog {
    padding: 16px;
  }

  dialog dl div:not([hidden]) {
    grid-template-columns: 100px minmax(0, 1fr);
  }
}

@media (prefers-reduced-motion: no-preference) {
  .fresh {
    animation: fresh 900ms ease-out;
  }
}

@keyframes fresh {
  from {
    color: var(--accent);
  }
}
`,
  },
  'board.html': {
    type: 'text/html; charset=utf-8',
    text: `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <meta name="robots" content="noindex">
    <title>{{title}}</title>
    <link rel="icon" type="image/svg+xml" href="{{prefix}}icon.svg">
    <link rel="stylesheet" href="{{prefix}}board.css">
    <script type="module" src="{{prefix}}board.js"></script>
  </head>
  <body>
    <a class="skip" href="#keys">Skip to the keys</a>
    <header>
      <h1>{{title}}</h1>
      <p id="link" class="link" role="status">Connecting …</p>
      <button id="pause" type="button" aria-pressed="false">Pause</button>
    </header>
    <main>
      <noscript><p class="banner bad">This page needs JavaScript.</p></noscript>
      <section aria-labelledby="health-title">
        <h2 id="health-title" class="hidden">Health</h2>
        <div id="trouble" role="alert"></div>
        <div id="health" class="health"></div>
      </section>
      <dl id="figures" class="figures" aria-label="Figures"></dl>
      <p id="note" class="quiet note" hidden></p>
      <div class="columns">
        <section id="keys" class="card keys" aria-labelledby="keys-title" tabindex="-1">
          <div class="bar">
            <h2 id="keys-title">Keys</h2>
            <label class="field"><span>Find</span><input id="find" type="search" autocomplete="off" spellcheck="false" placeholder="part of a key or process"></label>
            <label class="field"><span>Order</span><select id="order">
              <option value="busy">most turns first</option>
              <option value="waiting">most waiting first</option>
              <option value="ending">lease that ends next first</option>
              <option value="name">by name</option>
            </select></label>
          </div>
          <table id="table">
            <caption class="hidden">Keys that are held, waited for, or were so in the last five minutes</caption>
            <thead>
              <tr>
                <th scope="col">Key</th>
                <th scope="col">Turns, last 5 min</th>
                <th scope="col">Holder</th>
                <th scope="col" class="number">Lease left</th>
                <th scope="col" class="number">Waiting</th>
                <th scope="col" class="number">Token</th>
              </tr>
            </thead>
            <tbody id="rows"></tbody>
          </table>
          <p id="empty" class="empty" hidden></p>
          <nav id="pager" class="pager" aria-label="Pages of keys" hidden>
            <button id="previous" type="button">Previous</button>
            <p id="range"></p>
            <button id="next" type="button">Next</button>
          </nav>
        </section>
        <div class="rail">
          <section class="card of-keys" aria-labelledby="tokens-title">
            <h2 id="tokens-title">Tokens as they pass</h2>
            <ol id="tokens" class="feed" reversed></ol>
          </section>
          <section class="card" aria-labelledby="refused-title">
            <h2 id="refused-title">Refused stale writes, last hour</h2>
            <ol id="refused" class="feed" reversed></ol>
          </section>
          <section id="waits-card" class="card" aria-labelledby="waits-title">
            <h2 id="waits-title">Waits in this process</h2>
            <div id="waits"></div>
          </section>
          <section id="happened-card" class="card" aria-labelledby="happened-title">
            <h2 id="happened-title">Events in this process</h2>
            <ol id="happened" class="feed" reversed></ol>
          </section>
          <section class="card" aria-labelledby="servers-title">
            <h2 id="servers-title">Servers</h2>
            <h3 id="postgres-title">Postgres</h3>
            <ul id="postgres" class="servers" aria-labelledby="postgres-title"></ul>
            <h3 id="redis-title">Redis</h3>
            <ul id="redis" class="servers" aria-labelledby="redis-title"></ul>
          </section>
        </div>
      </div>
    </main>
    <footer id="cost"></footer>
    <dialog id="details" aria-labelledby="details-title"></dialog>
  </body>
</html>
`,
  },
  'board.js': {
    type: 'text/javascript; charset=utf-8',
    text: `// The page: hears what the server tells, and draws it, at most once in a frame.

import { Details } from './details.js';
import { KeyTable } from './keys.js';
import { drawPanels } from './panels.js';
import { State } from './state.js';
import { write } from './text.js';
import { linkOf } from './words.js';

/** So often leases count down where nothing else happens; milliseconds. */
const TICK = 500;
/** After which the page connects again where the browser does not; milliseconds. */
const RETRY = 3_000;

/** @param {string} id */
const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

const state = new State();
const details = new Details(state);
const table = new KeyTable((key) => details.open(key), draw);
let paused = false;
let scheduled = false;

function draw() {
  link();
  table.draw(state);
  drawPanels(state);
  details.draw();
}

function schedule() {
  if (paused || scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    draw();
  });
}

/** Says whether what is shown is up to date. */
function link() {
  const { kind, text } = linkOf(state, paused);
  byId('link').className = \`link \${kind}\`;
  write(byId('link'), text);
}

const pause = byId('pause');
pause.addEventListener('click', () => {
  paused = !paused;
  pause.setAttribute('aria-pressed', String(paused));
  link();
  schedule();
});

function connect() {
  const source = new EventSource(new URL('events', import.meta.url));
  source.addEventListener('error', () => {
    state.isConnected = false;
    link();
    schedule();
    // The browser tries again after a lost connection, but not after an answer such as 502.
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, RETRY);
  });
  for (const name of ['hello', 'keys', 'status', 'happened', 'refused']) {
    source.addEventListener(name, ({ data }) => {
      state.isConnected = true;
      state.apply(name, JSON.parse(data));
      if (name === 'hello') link();
      schedule();
    });
  }
}

connect();
setInterval(schedule, TICK);
`,
  },
  'chart.js': {
    type: 'text/javascript; charset=utf-8',
    text: `// Charts, drawn as SVG. Positions are attributes: the page allows no inline style.

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
    const viewBox = \`0 0 \${width} \${height}\`;
    this.svg = svg('svg', { class: 'spark', role: 'img', width, height, viewBox, preserveAspectRatio: 'none' });
    this.svg.append(this.#bars, this.#line);
  }

  /**
   * @param {{ turnBars: number[], waitingBars: number[], total: number }} key
   * @param {number} mostTurns in a bar of any chart beside it: all have one scale
   * @param {number} mostWaiting
   */
  draw({ turnBars, waitingBars, total }, mostTurns, mostWaiting) {
    const drawn = \`\${mostTurns} \${mostWaiting} \${turnBars} \${waitingBars}\`;
    if (drawn === this.#drawn) return;
    this.#drawn = drawn;
    const step = this.#width / BARS;
    let bars = '';
    turnBars.forEach((turns, at) => {
      if (turns === 0) return;
      // By the square root: a key with few turns is seen beside one with many.
      const height = Math.max(1.5, Math.sqrt(turns / mostTurns) * (this.#height - 2));
      bars += \`M\${round(at * step)} \${this.#height}v\${round(-height)}h\${round(step * 0.75)}v\${round(height)}z\`;
    });
    this.#bars.setAttribute('d', bars);
    this.#line.setAttribute('d', this.#lineOf(waitingBars, mostWaiting));
    const most = waitingBars.reduce((highest, count) => Math.max(highest, count), 0);
    const label = \`\${counted(total, 'turn', 'turns')} in five minutes, at most \${counted(most, 'process', 'processes')} waiting\`;
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
      line += \`\${goesOn ? 'L' : 'M'}\${round(at * step)} \${y}H\${round((at + 1) * step)}\`;
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
  const label = \`\${counted(total, 'wait', 'waits')}, half of them \${medianOf(bounds, counts, total)}, the longest \${duration(longest)}\`;
  const chart = svg('svg', {
    role: 'img',
    width: '100%',
    viewBox: \`0 0 \${width} \${height + foot}\`,
    'aria-label': label,
  });
  counts.forEach((count, at) => {
    const tall = count === 0 ? 0 : Math.max(2, (count / most) * (height - 2));
    const [x, y] = [round(at * step + 1), round(height - tall)];
    chart.append(svg('rect', { class: 'turns-bars', x, y, width: round(step - 2), height: round(tall), rx: 1 }));
  });
  chart.append(svg('path', { class: 'axis', d: \`M0 \${height}.5H\${width}\` }));
  bounds.forEach((bound, at) => {
    if (!/^10*$/.test(String(bound))) return;
    const x = round((at + 1) * step);
    const text = bound < 1_000 ? \`\${bound} ms\` : \`\${bound / 1_000} s\`;
    chart.append(svg('path', { class: 'axis', d: \`M\${x} \${height}v4\` }));
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
  return bound === undefined ? \`above \${duration(bounds.at(-1) ?? 0)}\` : \`at most \${number(bound)} ms\`;
}
`,
  },
  'details.js': {
    type: 'text/javascript; charset=utf-8',
    text: `// One key, with what can be done about it.

import { HeatChart } from './chart.js';
import { highest } from './keys.js';
import { clock, counted, duration, element, number, shown, write } from './text.js';
import { consequences, oldFacts } from './words.js';

/** So often the last turns of the key are asked for at most; milliseconds. */
const TURNS_EVERY = 1_000;

/** @typedef {import('./state.js').Key} Key */
/** @typedef {import('./state.js').State} State */
/**
 * @typedef {object} Turn
 * @property {string | null} turn
 * @property {string | null} token
 * @property {string | null} admittedAt
 * @property {number | null} duration
 * @property {string} outcome
 * @property {string | null} process
 * @property {string | null} error
 */

export class Details {
  #dialog = /** @type {HTMLDialogElement} */ (document.getElementById('details'));
  #state;
  /** @type {string | undefined} */
  #key;
  /** @type {HeatChart | undefined} */
  #chart;
  #old = element('p', { class: 'banner', role: 'status' });
  /** @type {Map<string, HTMLElement>} */
  #facts = new Map();
  #waitersTitle = element('h3', { id: 'who-waits' });
  #waiters = element('ol', { class: 'places', 'aria-labelledby': 'who-waits' });
  #waitersShown = '';
  #tokens = element('p', { class: 'passed' });
  #turns = element('ol', { class: 'feed turns', reversed: '' });
  /** What the list shows: the number of turns that the key had, and the answer. */
  #turnsOf = '';
  #turnsText = '';
  #askedAt = 0;
  #force = element('div', { class: 'force' });
  #said = element('p', { role: 'status' });
  #consequences = element('span');

  /** @param {State} state */
  constructor(state) {
    this.#state = state;
    this.#dialog.addEventListener('close', () => {
      this.#key = undefined;
    });
    this.#dialog.addEventListener('click', (event) => {
      if (event.target === this.#dialog) this.#dialog.close();
    });
  }

  /** @param {string} key */
  open(key) {
    this.#key = key;
    this.#chart = new HeatChart(560, 72);
    this.#chart.svg.setAttribute('width', '100%');
    this.#facts.clear();
    const close = element('button', { type: 'button' }, 'Close');
    close.addEventListener('click', () => this.#dialog.close());
    const facts = element('dl');
    for (const name of ['Holder', 'Lease ends in', 'Waiting', 'Token', 'Turns', 'Transaction', 'Problem']) {
      const fact = element('dd');
      this.#facts.set(name, fact);
      facts.append(element('div', {}, element('dt', {}, name), fact));
    }
    this.#dialog.replaceChildren(
      element('div', { class: 'top' }, element('h2', { id: 'details-title' }, shown(key)), close),
      this.#old,
      element('h3', {}, 'Turns in the last five minutes; the line: processes that waited'),
      this.#chart.svg,
      facts,
      this.#waitersTitle,
      this.#waiters,
      element('h3', {}, 'Tokens since this page was opened'),
      this.#tokens,
      element('h3', { id: 'last-turns' }, 'Last turns'),
      this.#turns,
      element('p', { class: 'quiet' }, turnsNote(this.#state.hello?.process === true)),
    );
    this.#turns.setAttribute('aria-labelledby', 'last-turns');
    this.#turns.replaceChildren(element('li', { class: 'quiet' }, 'Reading …'));
    this.#turnsOf = this.#turnsText = '';
    this.#askedAt = 0;
    write(this.#said, '');
    if (this.#state.hello?.token !== undefined) {
      this.#offer();
      this.#dialog.append(this.#force);
    }
    this.draw();
    this.#dialog.showModal();
  }

  draw() {
    if (this.#key === undefined) return;
    const key = this.#state.keys.get(this.#key);
    const { isOld } = this.#state;
    write(this.#old, oldFacts(this.#state));
    this.#old.hidden = !isOld;
    this.#fact('Holder', key ? holderOf(key) : 'free');
    const left = key?.holder == null ? undefined : key.endsAt - performance.now();
    const ends = isOld ? 'unknown' : \`\${duration(Math.max(0, left ?? 0))}, unless it is renewed\`;
    this.#fact('Lease ends in', left === undefined ? '–' : ends);
    this.#fact('Waiting', waitingText(key, this.#state.hello?.process === true));
    this.#drawWaiters(key);
    this.#drawConsequences(key);
    this.#fact('Token', tokenText(key));
    this.#fact('Turns', key ? number(Number(key.turns)) : '–');
    this.#fact('Transaction', transactionText(key));
    this.#fact('Problem', key?.problem ? shown(key.problem) : '');
    write(this.#tokens, key?.tokens.length ? key.tokens.map(({ token }) => token).join('   ') : 'none yet');
    if (key) this.#chart?.draw(key, highest([key], 'turnBars'), highest([key], 'waitingBars'));
    this.#readTurns(this.#key, key ? \`\${key.turns} \${key.transaction?.pid}\` : 'none');
  }

  /**
   * Who waits in which order.
   *
   * @param {Key | undefined} key
   */
  #drawWaiters(key) {
    const { waiters = [], waiting = 0 } = key ?? {};
    this.#waitersTitle.hidden = this.#waiters.hidden = waiters.length === 0;
    // Each of several nodes has a queue of its own.
    const isInOrder = !this.#state.status?.redis.some(({ role }) => /^node \\d/.test(role));
    write(this.#waitersTitle, isInOrder ? 'Who waits, the next one first' : 'Who waits, in no order');
    const text = JSON.stringify([waiters, waiting]);
    if (text === this.#waitersShown) return;
    this.#waitersShown = text;
    const places = waiters.map((name) => element('li', {}, name === null ? 'a process without a name' : shown(name)));
    const others = waiting - waiters.length;
    if (others > 0) places.push(element('li', { class: 'quiet' }, \`and \${number(others)} more\`));
    this.#waiters.replaceChildren(...places);
  }

  /**
   * Reads the last turns if the key has had others since they were read.
   *
   * @param {string} name
   * @param {string} state
   */
  async #readTurns(name, state) {
    const now = performance.now();
    if (state === this.#turnsOf || now - this.#askedAt < TURNS_EVERY) return;
    this.#askedAt = now;
    this.#turnsOf = state;
    const items = await lastTurns(name);
    // The dialog was closed meanwhile, or shows another key.
    if (this.#key !== name) return;
    const text = items.map(({ textContent }) => textContent).join('\\n');
    if (text === this.#turnsText) return;
    this.#turnsText = text;
    this.#turns.replaceChildren(...items);
  }

  /**
   * @param {string} name
   * @param {string | HTMLElement} value
   */
  #fact(name, value) {
    const fact = this.#facts.get(name);
    if (fact === undefined) return;
    /** @type {HTMLElement} */ (fact.parentElement).hidden = value === '';
    if (typeof value === 'string') write(fact, value);
    else if (fact.textContent !== value.textContent) fact.replaceChildren(value);
  }

  /** The first step: nothing is done yet. */
  #offer() {
    const ask = element('button', { type: 'button', class: 'danger' }, 'Force release …');
    ask.addEventListener('click', () => this.#confirm());
    this.#force.replaceChildren(element('div', { class: 'buttons' }, ask), this.#said);
  }

  /** The second: it says what will be done, to whom. */
  #confirm() {
    const name = /** @type {string} */ (this.#key);
    const key = this.#state.keys.get(name);
    const holder = key?.holder ?? null;
    write(this.#said, '');
    const yes = element('button', { type: 'button', class: 'danger' }, 'Release the key');
    const no = element('button', { type: 'button' }, 'Cancel');
    yes.addEventListener('click', () => this.#take(name, holder));
    no.addEventListener('click', () => this.#offer());
    this.#drawConsequences(key);
    this.#force.replaceChildren(
      element(
        'p',
        {},
        element('strong', {}, 'Take this key from '),
        ...whoHas(holder, key?.process ?? null),
        element('strong', {}, '?'),
        ' ',
        this.#consequences,
      ),
      element('div', { class: 'buttons' }, yes, no),
      this.#said,
    );
    // Not the one that does it.
    no.focus();
  }

  /**
   * Also while somebody thinks about it: a transaction may begin meanwhile.
   *
   * @param {Key | undefined} key
   */
  #drawConsequences(key) {
    write(this.#consequences, consequences(this.#state, key));
  }

  /**
   * @param {string} key
   * @param {string | null} holder
   */
  async #take(key, holder) {
    for (const button of this.#force.querySelectorAll('button')) button.disabled = true;
    write(this.#said, 'Releasing …');
    const text = await forceRelease(key, holder, this.#state.hello?.token ?? '');
    // The dialog was closed meanwhile, or shows another key.
    if (this.#key !== key) return;
    this.#offer();
    write(this.#said, text);
    if (this.#dialog.open) this.#force.querySelector('button')?.focus();
  }
}

/**
 * @param {string} key
 * @param {string | null} holder
 * @param {string} token
 */
async function forceRelease(key, holder, token) {
  try {
    const answer = await fetch(new URL('force-release', import.meta.url), {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-fenced-lock-board': token },
      body: JSON.stringify({ key, holder }),
    });
    const { error, released } = await answer.json();
    if (error !== undefined) return error;
    return released ? 'The key was taken from its holder.' : 'The key was free already.';
  } catch {
    return 'The board did not answer. If the key has a higher token now, it was released.';
  }
}

/**
 * @param {string} key
 * @returns {Promise<HTMLElement[]>}
 */
async function lastTurns(key) {
  const address = new URL('history', import.meta.url);
  address.searchParams.set('key', key);
  try {
    const { turns, error } = await (await fetch(address)).json();
    if (error !== undefined) return [element('li', { class: 'quiet' }, shown(error))];
    if (turns.length === 0) return [element('li', { class: 'quiet' }, 'No turn is remembered.')];
    return turns.map(turnItem);
  } catch {
    return [element('li', { class: 'quiet' }, 'The board did not answer.')];
  }
}

/** @param {Turn} turn */
function turnItem({ turn, token, admittedAt, duration: took, outcome, process, error }) {
  const end = error === null ? outcome.replaceAll('-', ' ') : \`\${outcome.replaceAll('-', ' ')}: \${error}\`;
  const item = element(
    'li',
    {},
    element('time', {}, admittedAt === null ? '–' : clock(admittedAt)),
    element('span', {}, turn === null ? '–' : \`turn \${turn}\`),
    element('span', { class: outcome === 'committed' ? undefined : 'bad' }, shown(end)),
  );
  const more = [token && \`token \${token}\`, took !== null && \`in \${duration(took)}\`, process && \`by \${process}\`];
  const said = more.filter(Boolean).join(', ');
  if (said !== '') item.append(element('span', { class: 'said' }, shown(said)));
  return item;
}

/** @param {boolean} inProcess */
function turnsNote(inProcess) {
  const kept = 'Postgres keeps the last 16 turns that committed, and the token and time of the last one.';
  return inProcess
    ? \`\${kept} Times, durations and turns that were rolled back are of this process, since the board was opened.\`
    : kept;
}

/** @param {Key} key */
function holderOf({ holder, process }) {
  if (holder === null) return 'free';
  const id = element('span', { class: 'holder' }, shown(holder));
  return process === null ? id : element('span', {}, shown(process), ' ', id);
}

/**
 * The name of its process, if it is known, with its id in brackets.
 *
 * @param {string | null} holder
 * @param {string | null} process
 */
function whoHas(holder, process) {
  if (holder === null) return ['its next holder'];
  const id = element('span', { class: 'holder' }, shown(holder));
  return process === null ? [id] : [shown(process), ' (', id, ')'];
}

/**
 * @param {Key | undefined} key
 * @param {boolean} inProcess
 */
function waitingText(key, inProcess) {
  if (key === undefined) return '–';
  const processes = counted(key.waiting, 'process', 'processes');
  return inProcess ? \`\${processes}, and \${counted(key.callers, 'caller', 'callers')} in this process\` : processes;
}

/** @param {Key | undefined} key */
function tokenText(key) {
  if (key?.token == null) return 'none';
  return key.admittedAt === null ? key.token : \`\${key.token}, admitted at \${clock(key.admittedAt)}\`;
}

/** @param {Key | undefined} key */
function transactionText(key) {
  if (key?.transaction == null) return 'none';
  const { pid, since } = key.transaction;
  return \`open since \${clock(since)}, Postgres backend \${pid}\`;
}
`,
  },
  'icon.svg': {
    type: 'image/svg+xml',
    text: `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><title>Lock</title><path fill="#3b6fd8" d="M4 7V5a4 4 0 0 1 8 0v2h1v8H3V7zm2 0h4V5a2 2 0 0 0-4 0z"/></svg>
`,
  },
  'keys.js': {
    type: 'text/javascript; charset=utf-8',
    text: `// The table of keys. One page of it is in the document, whatever there is behind it.

import { HeatChart } from './chart.js';
import { duration, element, number, shown, shownText, write } from './text.js';
import { rateText } from './words.js';

/** @typedef {import('./state.js').Key} Key */

const PAGE = 25;
/** How long an order stands at least, so that rows do not jump; milliseconds. */
const ORDER_STANDS = 2_000;

/** @type {Record<string, (one: Key, other: Key) => number>} */
const ORDERS = {
  busy: (one, other) => other.total - one.total || other.waiting - one.waiting,
  waiting: (one, other) => other.waiting - one.waiting || other.total - one.total,
  ending: (one, other) => endOf(one) - endOf(other),
  name: () => 0,
};

/** @param {Key} key */
function endOf({ holder, endsAt }) {
  return holder === null ? Number.POSITIVE_INFINITY : endsAt;
}

/** @param {string} id */
const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

export class KeyTable {
  #find = /** @type {HTMLInputElement} */ (byId('find'));
  #order = /** @type {HTMLSelectElement} */ (byId('order'));
  #previous = /** @type {HTMLButtonElement} */ (byId('previous'));
  #next = /** @type {HTMLButtonElement} */ (byId('next'));
  #table = byId('table');
  #rows = byId('rows');
  /** @type {KeyRow[]} */
  #slots = [];
  /** @type {string[]} */
  #sorted = [];
  #sortedAt = 0;
  #sortedFor = '';
  #page = 0;
  #onOpen;

  /**
   * @param {(key: string) => void} onOpen
   * @param {() => void} changed
   */
  constructor(onOpen, changed) {
    this.#onOpen = onOpen;
    const anew = () => {
      this.#page = 0;
      changed();
    };
    this.#find.addEventListener('input', anew);
    this.#order.addEventListener('change', anew);
    for (const [button, by] of /** @type {const} */ ([
      [this.#previous, -1],
      [this.#next, 1],
    ])) {
      button.addEventListener('click', () => {
        this.#page += by;
        changed();
      });
    }
  }

  /**
   * @param {import('./state.js').State} state
   */
  draw({ keys, known, isOld, status }) {
    const found = this.#inOrder(keys);
    const pages = Math.max(1, Math.ceil(found.length / PAGE));
    this.#page = Math.min(Math.max(0, this.#page), pages - 1);
    const from = this.#page * PAGE;
    const here = found.slice(from, from + PAGE).flatMap((key) => keys.get(key) ?? []);
    const mostTurns = highest(here, 'turnBars');
    const mostWaiting = highest(here, 'waitingBars');
    here.forEach((key, at) => {
      this.#slots[at] ??= new KeyRow(this.#onOpen);
      const slot = this.#slots[at];
      if (!slot.row.isConnected) this.#rows.append(slot.row);
      slot.draw(key, mostTurns, mostWaiting, isOld, status?.minute);
    });
    for (const slot of this.#slots.slice(here.length)) slot.row.remove();
    this.#table.hidden = here.length === 0;
    const empty = byId('empty');
    empty.hidden = here.length > 0;
    if (here.length === 0) write(empty, emptyText(known, this.#find.value));
    byId('pager').hidden = pages === 1;
    write(byId('range'), \`\${number(from + 1)} to \${number(from + here.length)} of \${number(found.length)}\`);
    this.#previous.disabled = this.#page === 0;
    this.#next.disabled = this.#page === pages - 1;
  }

  /**
   * Their order stands while somebody points at one of them or has it in focus.
   *
   * @param {Map<string, Key>} keys
   */
  #inOrder(keys) {
    const wanted = this.#find.value.toLowerCase();
    const order = this.#order.value;
    const asked = \`\${order} \${wanted}\`;
    const held = this.#rows.matches(':hover') || this.#rows.contains(document.activeElement);
    const now = performance.now();
    if (asked === this.#sortedFor && (held || now - this.#sortedAt < ORDER_STANDS)) return this.#withNew(keys, wanted);
    this.#sortedFor = asked;
    this.#sortedAt = now;
    const compare = ORDERS[order] ?? (() => 0);
    this.#sorted = [...keys.values()]
      .filter((key) => matches(key, wanted))
      .sort((one, other) => compare(one, other) || (one.key < other.key ? -1 : 1))
      .map(({ key }) => key);
    return this.#sorted;
  }

  /**
   * @param {Map<string, Key>} keys
   * @param {string} wanted
   */
  #withNew(keys, wanted) {
    const sorted = this.#sorted.filter((key) => keys.has(key));
    const there = new Set(sorted);
    for (const key of keys.values()) if (!there.has(key.key) && matches(key, wanted)) sorted.push(key.key);
    this.#sorted = sorted;
    return sorted;
  }
}

/**
 * @param {Key} key
 * @param {string} wanted
 */
function matches({ key, holder, process, waiters }, wanted) {
  if (wanted === '') return true;
  return [key, shownText(key), holder, process, ...waiters].some((text) => text?.toLowerCase().includes(wanted));
}

/**
 * @param {Key[]} keys
 * @param {'turnBars' | 'waitingBars'} bars
 */
export function highest(keys, bars) {
  let most = 1;
  for (const key of keys) for (const count of key[bars]) most = Math.max(most, count);
  return most;
}

/**
 * @param {boolean} known
 * @param {string} find
 */
function emptyText(known, find) {
  if (!known) return 'Reading the keys …';
  if (find !== '') return 'No key matches.';
  return 'No key is held or waited for. A key appears here when a caller takes it.';
}

/** One row; it is used again for whatever key stands in its place. */
class KeyRow {
  #key = '';
  #chart = new HeatChart(120, 28);
  #open = element('button', { class: 'open', type: 'button', 'aria-haspopup': 'dialog' });
  #rate = element('span');
  #holder = element('td', { role: 'cell' });
  #holderText = '';
  #lease = element('td', { role: 'cell', class: 'number', 'data-label': 'lease' });
  #waiting = element('td', { role: 'cell', class: 'number', 'data-label': 'waiting' });
  #token = element('span');
  #changedAt = 0;

  /** @param {(key: string) => void} onOpen */
  constructor(onOpen) {
    this.#open.addEventListener('click', () => onOpen(this.#key));
    const heat = element('div', { class: 'heat' }, this.#chart.svg, this.#rate);
    this.row = element(
      'tr',
      { role: 'row' },
      element('td', { role: 'cell' }, this.#open),
      element('td', { role: 'cell' }, heat),
      this.#holder,
      this.#lease,
      this.#waiting,
      element('td', { role: 'cell', class: 'number', 'data-label': 'token' }, this.#token),
    );
  }

  /**
   * @param {Key} key
   * @param {number} mostTurns
   * @param {number} mostWaiting
   * @param {boolean} isOld
   * @param {{ ms: number, bars: number }} [minute]
   */
  draw(key, mostTurns, mostWaiting, isOld, minute) {
    const another = key.key !== this.#key || this.#open.firstChild === null;
    if (another) this.#open.replaceChildren(shown(key.key));
    this.#key = key.key;
    this.#chart.draw(key, mostTurns, mostWaiting);
    write(this.#rate, rateText(key.turnBars, minute));
    this.#drawHolder(key);
    write(this.#lease, key.holder === null ? '–' : isOld ? '?' : leftOf(key));
    write(this.#waiting, number(key.waiting));
    this.#waiting.classList.toggle('warm', key.waiting > 0);
    write(this.#token, key.token ?? '–');
    if (!another && key.changedAt > this.#changedAt) flash(this.#token);
    this.#changedAt = key.changedAt;
  }

  /** @param {Key} key */
  #drawHolder({ holder, process, problem }) {
    const text = \`\${process} \${holder} \${problem}\`;
    if (text === this.#holderText) return;
    this.#holderText = text;
    const nobody = problem === null ? 'free' : 'not a lease';
    this.#holder.classList.toggle('idle', holder === null);
    if (holder === null) this.#holder.replaceChildren(nobody);
    else if (process !== null) this.#holder.replaceChildren(shown(process));
    else this.#holder.replaceChildren(element('span', { class: 'holder' }, shown(holder)));
  }
}

/** @param {Key} key */
function leftOf({ endsAt }) {
  const left = endsAt - performance.now();
  return left > 0 ? duration(Math.ceil(left / 100) * 100) : 'ended';
}

/** @param {Element} place */
function flash(place) {
  place.classList.remove('fresh');
  // Begun anew in the next frame; without a read of the layout the class would not have been away.
  requestAnimationFrame(() => place.classList.add('fresh'));
}
`,
  },
  'panels.js': {
    type: 'text/javascript; charset=utf-8',
    text: `// What stands around the table.

import { histogram } from './chart.js';
import { clock, counted, duration, element, number, shown, write } from './text.js';

/** @typedef {import('./state.js').State} State */

/** So many events are shown, the newest first. */
const EVENTS = 10;

/** @param {string} id */
const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** Draws a part anew only if what it shows is another. @type {Map<string, string>} */
const drawn = new Map();

/**
 * @param {string} id
 * @param {unknown} shows
 * @param {() => Array<Node | string>} draw
 */
function once(id, shows, draw) {
  const text = JSON.stringify(shows);
  if (drawn.get(id) === text) return;
  drawn.set(id, text);
  byId(id).replaceChildren(...draw());
}

/** @param {State} state */
export function drawPanels(state) {
  const { status, hello, tokens, happened } = state;
  document.body.classList.toggle('stale', state.isOld);
  document.body.classList.toggle('lost', state.isConnected === false);
  drawFigures(state);
  once('tokens', tokens, () =>
    tokens.length === 0 ? [quiet('None since this page was opened.')] : tokens.map(tokenItem),
  );
  const { refused } = state;
  once('refused', refused, () => (refused.length === 0 ? [quiet('None.')] : refused.slice(0, EVENTS).map(refusedItem)));
  byId('waits-card').hidden = byId('happened-card').hidden = hello?.process === false;
  once('happened', happened, () =>
    happened.length === 0
      ? [quiet('Nothing since the board was opened.')]
      : happened.slice(0, EVENTS).map(happeningItem),
  );
  if (status === undefined) return;
  drawTrouble(status);
  drawHealth(status);
  const { postgres } = status;
  once('postgres', postgres ?? null, () => [postgres === undefined ? quiet('Not known yet.') : serverItem(postgres)]);
  once('redis', status.redis, () =>
    status.redis.length === 0 ? [quiet('Not known yet.')] : status.redis.map(serverItem),
  );
  if (status.waits) drawWaits(status.waits);
  drawCost(state, status);
}

/** @param {State} state */
function drawFigures(state) {
  let held = 0;
  let waiting = 0;
  for (const key of state.keys.values()) {
    if (key.holder !== null) held++;
    waiting += key.waiting;
  }
  const { rate } = state;
  const none = state.known ? undefined : '–';
  const figures = [
    ['keys held', none ?? number(held), ''],
    ['processes waiting', none ?? number(waiting), waiting > 0 ? 'warm' : ''],
    ['turns a second', none ?? (rate < 10 ? rate.toFixed(1) : number(Math.round(rate))), ''],
  ];
  const isInProcess = state.hello?.process === true;
  // Without a process of its own and without the others there is nothing to count.
  const canRead = state.status?.refusals !== false;
  const refused = canRead || isInProcess ? number(state.refusedCount) : '–';
  figures.push([\`refused stale writes\\u00A0\${canRead ? '*' : '†'}\`, refused, state.refusedCount > 0 ? 'bad' : '']);
  if (isInProcess) {
    const { timeouts, lost } = state.counted;
    figures.push(['timeouts\\u00A0†', number(timeouts), timeouts > 0 ? 'warm' : '']);
    figures.push(['leases lost\\u00A0†', number(lost), lost > 0 ? 'bad' : '']);
  }
  byId('note').hidden = state.hello === undefined;
  write(byId('note'), noteOf(isInProcess, canRead));
  once('figures', figures, () =>
    figures.map(([name = '', value = '', kind = '']) =>
      element('div', { class: kind }, element('dt', {}, name), element('dd', {}, value)),
    ),
  );
}

/**
 * Whose numbers they are.
 *
 * @param {boolean} isInProcess
 * @param {boolean} canRead
 */
function noteOf(isInProcess, canRead) {
  const opened = 'since the board was opened.';
  if (canRead)
    return isInProcess ? \`* In all processes, † in this process, \${opened}\` : \`* In all processes, \${opened}\`;
  const why = 'Refused writes of other processes cannot be read from Redis.';
  return isInProcess ? \`† In this process, \${opened} \${why}\` : \`† \${why}\`;
}

/** @param {NonNullable<State['status']>} status */
function drawTrouble({ trouble, missing, seenAt }) {
  // Without trouble each status has another time.
  once('trouble', [trouble, missing, trouble && seenAt], () => {
    const banners = missing.map((text) => banner('Not all keys are here.', text));
    if (trouble) {
      const shows = seenAt === undefined ? '' : \`What you see is from \${clock(seenAt)}. \`;
      banners.unshift(banner('The keys cannot be read:', \`\${trouble.text}. \${shows}The board tries again.\`));
    }
    return banners;
  });
}

/**
 * @param {string} title
 * @param {string} text
 */
function banner(title, text) {
  return element('p', { class: 'banner' }, element('strong', {}, title), ' ', shown(text));
}

/** @param {NonNullable<State['status']>} status */
function drawHealth({ health, trouble }) {
  const isTroubled = trouble !== undefined;
  once('health', [health, isTroubled], () => {
    if (health.length === 0) return ['Checking the servers …'];
    const ill = health.filter(({ status }) => status !== 'ok');
    const well = health.filter(({ status }) => status === 'ok').map(({ message }) => message);
    // In trouble the next check, which tells where it is, has not ended yet.
    const all = isTroubled ? 'At the last check: ' : 'All is well. ';
    const sentence = ill.length === 0 ? all : well.length > 0 ? 'The rest is well. ' : '';
    const list = element('ul', {});
    for (const { status, message, remedy } of ill) {
      const text = remedy === undefined ? message : \`\${message} What to do: \${remedy}\`;
      const kind = status === 'fault' ? 'bad' : 'warning';
      list.append(
        element(
          'li',
          { class: \`dot \${kind}\` },
          element('strong', {}, kind === 'bad' ? 'Fault: ' : 'Warning: '),
          shown(text),
        ),
      );
    }
    if (sentence !== '') {
      const kind = isTroubled && ill.length === 0 ? 'dot' : 'dot good';
      list.append(element('li', { class: kind }, element('strong', {}, sentence), well.join(' ')));
    }
    return [list];
  });
}

/** @param {NonNullable<NonNullable<State['status']>['waits']>} waits */
function drawWaits(waits) {
  once('waits', waits, () => {
    const { chart, label, total } = histogram(waits);
    if (total === 0) return [quiet('No call since the board was opened.', 'p')];
    return [chart, element('p', { class: 'quiet' }, \`\${label}.\`)];
  });
}

/**
 * @param {State} state
 * @param {NonNullable<State['status']>} status
 */
function drawCost(state, { took, interval }) {
  let used = 0;
  for (const { holder, waiting } of state.keys.values()) if (holder !== null || waiting > 0) used++;
  const looks = 1_000 / Math.max(interval, 2 * took, 1);
  const commands = counted(Math.ceil(looks * (used + 2)), 'command', 'commands');
  const inRedis = state.hello?.inMemory ? '' : \`about \${commands} a second in Redis and \`;
  write(
    byId('cost'),
    \`The servers are read only while this page is open, once for all who have it open: every \${duration(interval)}, \` +
      \`\${inRedis}\${counted(Math.ceil(looks), 'statement', 'statements')} a second in Postgres. \` +
      \`The last read took \${duration(took)}. The board has no login of its own.\`,
  );
}

/** @param {State['tokens'][number]} passed */
function tokenItem({ key, token, turns, at }) {
  const text = turns > 1 ? \`\${token} (+\${turns})\` : token;
  return element('li', {}, element('time', {}, clock(at)), shown(key), element('span', {}, text));
}

/** @param {State['happened'][number]} happening */
function happeningItem({ type, bad, at, key, text }) {
  const what = element('span', { class: 'what' }, type.replaceAll('-', ' '));
  const item = element('li', { class: \`event \${bad ? 'bad' : 'good'}\` }, element('time', {}, clock(at)), what);
  if (key !== undefined) item.append(element('span', { class: 'said' }, shown(key)));
  item.append(element('span', { class: 'said' }, shown(text)));
  return item;
}

/** @param {State['refused'][number]} refusal */
function refusedItem({ at, key, token, text, process, own }) {
  const by = element(
    'span',
    { class: 'said' },
    own ? 'By this process.' : process === null ? 'By another process.' : 'By ',
  );
  if (!own && process !== null) by.append(shown(process), '.');
  return element(
    'li',
    { class: 'event bad' },
    element('time', {}, clock(at)),
    shown(key),
    element('span', { class: 'what' }, 'token ', shown(token)),
    element('span', { class: 'said' }, shown(text)),
    by,
  );
}

/** @param {import('./state.js').Server} server */
function serverItem({ address, role, status, healthy }) {
  return element(
    'li',
    {},
    element('span', { class: \`mono dot \${healthy ? 'good' : 'bad'}\` }, shown(address)),
    element('span', {}, shown(status)),
    element('span', { class: 'role' }, shown(role)),
  );
}

/**
 * @param {string} text
 * @param {string} [tag]
 */
function quiet(text, tag = 'li') {
  return element(tag, { class: 'quiet' }, text);
}
`,
  },
  'state.js': {
    type: 'text/javascript; charset=utf-8',
    text: `// What the server has told, and nothing about how it is shown.

/** Bars of a chart, and how long each is; milliseconds. As in src/board/history.ts. */
export const BARS = 60;
const BAR = 5_000;
/** Of each key so many tokens are kept, and of all together. */
const TOKENS_OF_KEY = 12;
const TOKENS = 9;
const HAPPENED = 100;
/** For so long a refused write is shown; milliseconds. */
const REFUSED_FOR = 3_600_000;

/**
 * @typedef {object} Key
 * @property {string} key
 * @property {string | null} holder
 * @property {string | null} process
 * @property {number} endsAt by performance.now()
 * @property {number} waiting
 * @property {Array<string | null>} waiters the names of the first of them, in their order
 * @property {number} callers
 * @property {string | null} problem
 * @property {string | null} token
 * @property {string} turns
 * @property {string | null} admittedAt
 * @property {{ pid: number, since: string } | null} transaction
 * @property {number[]} turnBars
 * @property {number[]} waitingBars
 * @property {number} total turns in all bars
 * @property {Array<{ token: string, at: number }>} tokens
 * @property {number} changedAt by performance.now(), of the token
 *
 * @typedef {{ server: string, check: string, status: string, message: string, remedy?: string }} Finding
 * @typedef {{ type: string, bad: boolean, at: number, key?: string, text: string }} Happening
 * @typedef {{ id: string, at: number, key: string, token: string, text: string, process: string | null, own: boolean }} Refused
 * @typedef {{ address: string, role: string, status: string, healthy: boolean }} Server
 * @typedef {object} Status
 * @property {number} now
 * @property {number} took
 * @property {number} interval
 * @property {number} [seenAt] when the keys were seen last
 * @property {{ text: string, since: number }} [trouble]
 * @property {string[]} missing
 * @property {boolean} refusals whether those of other processes could be read
 * @property {Finding[]} health
 * @property {{ ms: number, bars: number }} minute what of the last minute was watched, and how many of the last bars it is in
 * @property {Server} [postgres] \`undefined\` as long as it is not known which one it is
 * @property {Server[]} redis
 * @property {{ bounds: number[], counts: number[], longest: number }} [waits]
 */

export class State {
  /** @type {Map<string, Key>} */
  keys = new Map();
  /** Whether the keys are known at all. */
  known = false;
  /** @type {Status | undefined} */
  status;
  /** Whether the server of the board sends events. \`undefined\` before its first one. @type {boolean | undefined} */
  isConnected;
  /** When the keys were seen last. @type {number | undefined} */
  seenAt;
  /** Whether the server has seen keys since it began to look: after a pause its first look is not done yet. */
  #isSeen = false;
  /** @type {{ title: string, interval: number, token?: string, process: boolean, inMemory: boolean } | undefined} */
  hello;
  /** @type {Happening[]} the newest first */
  happened = [];
  /** Since the board was opened, also those that are not in \`happened\` any more. */
  counted = { timeouts: 0, lost: 0 };
  /** @type {Refused[]} the newest first */
  #refused = [];
  /** Since the board was opened, by all processes. */
  refusedCount = 0;
  /** @type {Array<{ key: string, token: string, turns: number, at: number }>} the newest first */
  tokens = [];
  #bar = 0;

  /**
   * @param {string} event
   * @param {any} data
   */
  apply(event, data) {
    if (event === 'hello') this.hello = data;
    else if (event === 'status') this.#told(data);
    else if (event === 'keys') this.#keys(data);
    else if (event === 'happened') this.#happened(data);
    else if (event === 'refused') this.#refusedWrites(data);
  }

  /** Whether what is known of the keys is of the last good look, and not of the present. */
  get isOld() {
    return this.known && (this.isConnected === false || !this.#isSeen || this.status?.trouble !== undefined);
  }

  /** The refused writes of the last hour, the newest first. */
  get refused() {
    const since = Date.now() - REFUSED_FOR;
    return this.#refused.filter(({ at }) => at > since);
  }

  /** Turns of all keys in the bar before the present one, a second. */
  get rate() {
    let turns = 0;
    for (const { turnBars } of this.keys.values()) turns += turnBars[BARS - 2] ?? 0;
    return turns / (BAR / 1_000);
  }

  /** @param {Status} status */
  #told(status) {
    this.status = status;
    this.#isSeen = status.seenAt !== undefined;
    this.seenAt = status.seenAt ?? this.seenAt;
  }

  /** @param {{ all?: boolean, bar: number, keys: any[], gone: string[] }} data */
  #keys({ all = false, bar, keys, gone }) {
    if (all) this.keys.clear();
    else this.#shift(bar - this.#bar);
    this.#bar = bar;
    this.known = true;
    this.#isSeen = true;
    for (const key of gone) this.keys.delete(key);
    for (const sent of keys) this.#key(sent, all);
  }

  /**
   * @param {any} sent
   * @param {boolean} all
   */
  #key({ expiresIn, bar, turnBars, waitingBars, ...sent }, all) {
    const before = this.keys.get(sent.key);
    const now = performance.now();
    /** @type {Key} */
    const key = {
      ...sent,
      endsAt: now + expiresIn,
      turnBars: turnBars ?? before?.turnBars ?? Array(BARS).fill(0),
      waitingBars: waitingBars ?? before?.waitingBars ?? Array(BARS).fill(0),
      tokens: before?.tokens ?? [],
      changedAt: before?.changedAt ?? 0,
      total: 0,
    };
    [key.turnBars[BARS - 1], key.waitingBars[BARS - 1]] = bar;
    key.total = key.turnBars.reduce((sum, turns) => sum + turns, 0);
    if (!all && key.token !== null && key.token !== before?.token) this.#passed(key, before, now);
    this.keys.set(key.key, key);
  }

  /**
   * @param {Key} key
   * @param {Key | undefined} before
   * @param {number} now
   */
  #passed(key, before, now) {
    const at = Date.now();
    const token = /** @type {string} */ (key.token);
    key.changedAt = now;
    key.tokens = [{ token, at }, ...key.tokens].slice(0, TOKENS_OF_KEY);
    const turns = before === undefined ? 1 : Number(BigInt(key.turns) - BigInt(before.turns));
    this.tokens = [{ key: key.key, token, turns: Math.max(1, turns), at }, ...this.tokens].slice(0, TOKENS);
  }

  /** @param {number} by */
  #shift(by) {
    if (by <= 0) return;
    const bars = Math.min(by, BARS);
    for (const key of this.keys.values()) {
      for (const list of [key.turnBars, key.waitingBars]) {
        list.splice(0, bars);
        list.push(...Array(bars).fill(0));
      }
      key.total = key.turnBars.reduce((sum, turns) => sum + turns, 0);
    }
  }

  /**
   * @param {{ all?: boolean, refused: Refused[], count: number }} data
   */
  #refusedWrites({ all = false, refused, count }) {
    this.refusedCount = count;
    const before = all ? [] : this.#refused;
    // Of two in the same millisecond the one that was told later comes first, too.
    this.#refused = [...refused.toReversed(), ...before].sort((one, other) => other.at - one.at).slice(0, HAPPENED);
  }

  /**
   * @param {{ all?: boolean, happened: Happening[], passedOver: number, timeouts: number, lost: number }} data
   */
  #happened({ all = false, happened, timeouts, lost }) {
    if (all) this.happened = [];
    this.counted = { timeouts, lost };
    for (const each of happened) this.happened.unshift(each);
    this.happened.length = Math.min(this.happened.length, HAPPENED);
  }
}
`,
  },
  'text.js': {
    type: 'text/javascript; charset=utf-8',
    text: `// Texts. What others chose, such as a key, becomes text nodes alone: no markup is ever made of it.

/** What would be obeyed, hidden, blank, or reorder what stands beside it, as in src/base/invisible.ts; and all but a single space. */
const HIDDEN = /(?! )[\\p{C}\\p{Z}\\p{Default_Ignorable_Code_Point}\\u{2800}\\u{1D159}]|^ +| +$| {2,}/gu;

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
  return Array.from(hidden, (character) => \`U+\${hex(character)}\`).join(' ');
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
 * \`3 processes\`
 *
 * @param {number} count
 * @param {string} one
 * @param {string} many
 */
export function counted(count, one, many) {
  return \`\${number(count)} \${count === 1 ? one : many}\`;
}

/** @param {number} ms */
export function duration(ms) {
  if (ms < 1_000) return \`\${Math.round(ms)} ms\`;
  if (ms < 60_000) return \`\${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s\`;
  if (ms < 3_600_000) return \`\${Math.floor(ms / 60_000)} min \${Math.floor((ms % 60_000) / 1_000)} s\`;
  return \`\${Math.floor(ms / 3_600_000)} h \${Math.floor((ms % 3_600_000) / 60_000)} min\`;
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
`,
  },
  'words.js': {
    type: 'text/javascript; charset=utf-8',
    text: `// What the page says of its own state and before a force release. No document is needed to try it.

import { clock, number } from './text.js';

/** @typedef {import('./state.js').Key} Key */
/** @typedef {import('./state.js').State} State */

/**
 * Whether what is shown is up to date.
 *
 * @param {State} state
 * @param {boolean} isPaused
 * @returns {{ kind: 'connecting' | 'live' | 'paused' | 'old' | 'lost', text: string }}
 */
export function linkOf(state, isPaused) {
  if (state.isConnected === undefined) return { kind: 'connecting', text: 'Connecting …' };
  const shows = state.known ? \` What you see is \${asOf(state)}.\` : '';
  if (!state.isConnected) return { kind: 'lost', text: \`The board’s server does not answer. Trying again …\${shows}\` };
  if (isPaused) return { kind: 'paused', text: 'Paused' };
  if (state.isOld) return { kind: 'old', text: \`Connected, but the data is old: \${asOf(state)}\` };
  return state.status?.trouble === undefined
    ? { kind: 'live', text: 'Live' }
    : { kind: 'old', text: 'Connected, but the keys cannot be read' };
}

/**
 * When the keys were seen last.
 *
 * @param {State} state
 */
function asOf({ seenAt }) {
  return seenAt === undefined ? 'of an unknown time' : \`as of \${clock(seenAt)}\`;
}

/**
 * Above the facts of a key; empty if they are of the present.
 *
 * @param {State} state
 */
export function oldFacts(state) {
  return state.isOld ? \`The keys cannot be read now. All of this is \${asOf(state)}, and may be different by now.\` : '';
}

/**
 * What a force release does with what is known of the key now.
 *
 * @param {State} state
 * @param {Key | undefined} key
 */
export function consequences(state, key) {
  const isHeld = key?.holder != null;
  const known =
    key?.transaction == null
      ? \`No transaction of it is open in this database; if one is opened by then, it is ended and rolled back.\${
          isHeld ? ' If it works in another one, it goes on there.' : ''
        }\`
      : \`Its open transaction (Postgres backend \${key.transaction.pid}) is ended and rolled back.\`;
  const later = isHeld ? 'Later writes of that holder in this database are refused as stale. ' : '';
  const old = state.isOld ? \`This is \${asOf(state)}, and may be different by now. \` : '';
  return \`\${old}\${known} \${later}The next process that waits gets the key. Nothing that was committed is lost.\`;
}

/** A rate is not told of less; milliseconds. */
const LEAST_WATCHED = 5_000;

/**
 * Turns a minute, by the part of the last minute that was watched.
 *
 * @param {number[]} turnBars
 * @param {{ ms: number, bars: number } | undefined} minute
 */
export function rateText(turnBars, minute) {
  if (minute === undefined || minute.bars === 0) return '–';
  const turns = turnBars.slice(-minute.bars).reduce((sum, count) => sum + count, 0);
  if (turns === 0) return '–';
  if (minute.ms < LEAST_WATCHED) return '…';
  return \`\${number(Math.max(1, Math.round((turns * 60_000) / minute.ms)))} /min\`;
}
`,
  },
};

/** Of the database objects that this package brings. */
export const OBJECTS_VERSION = 6;
