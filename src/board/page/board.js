// The page: hears what the server tells, and draws it, at most once in a frame.

import { Details } from './details.js';
import { KeyTable } from './keys.js';
import { drawPanels } from './panels.js';
import { State } from './state.js';
import { write } from './text.js';

/** So often leases count down where nothing else happens; milliseconds. */
const TICK = 500;

/** @param {string} id */
const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

const state = new State();
const details = new Details(state);
const table = new KeyTable((key) => details.open(key), draw);
let paused = false;
let scheduled = false;

function draw() {
  table.draw(state.keys, state.known);
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

/**
 * @param {string} text
 * @param {'live' | 'lost' | 'paused'} kind
 */
function link(text, kind) {
  byId('link').className = `link ${kind}`;
  write(byId('link'), text);
}

const pause = byId('pause');
pause.addEventListener('click', () => {
  paused = !paused;
  pause.setAttribute('aria-pressed', String(paused));
  if (paused) link('Paused', 'paused');
  else link('Live', 'live');
  schedule();
});

const events = new EventSource(new URL('events', import.meta.url));
events.addEventListener('error', () => link('The board’s server does not answer. Trying again …', 'lost'));
for (const name of ['hello', 'keys', 'status', 'happened']) {
  events.addEventListener(name, ({ data }) => {
    state.apply(name, JSON.parse(data));
    if (name === 'hello' && !paused) link('Live', 'live');
    schedule();
  });
}
setInterval(schedule, TICK);
