// The page: hears what the server tells, and draws it, at most once in a frame.

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
  byId('link').className = `link ${kind}`;
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
  for (const name of ['hello', 'keys', 'status', 'happened']) {
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
