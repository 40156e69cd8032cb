// The page: hears what the server tells, and draws it, at most once in a frame.

import { Details } from './details.js';
import { KeyTable } from './keys.js';
import { drawPanels } from './panels.js';
import { State } from './state.js';
import { byId, redraw } from './text.js';

/** So often leases count down where nothing else happens; milliseconds. */
const TICK = 500;
/** After which the page connects again where the browser does not; milliseconds. */
const RETRY = 3_000;

const state = new State();
const details = new Details(state);
const table = new KeyTable(state, (key) => details.open(key));
let isPaused = false;
let isScheduled = false;

function draw(): void {
  const [kind, text] = state.link(isPaused);
  byId('link').className = `dot ${kind}`;
  redraw(byId('link'), text);
  if (isPaused) return;
  table.draw();
  drawPanels(state);
  details.draw();
}

function schedule(): void {
  if (isScheduled) return;
  isScheduled = true;
  requestAnimationFrame(() => {
    isScheduled = false;
    draw();
  });
}

byId('pause').addEventListener('click', () => {
  isPaused = !isPaused;
  byId('pause').setAttribute('aria-pressed', String(isPaused));
  schedule();
});

function connect(): void {
  const source = new EventSource(new URL('events', import.meta.url));
  source.addEventListener('error', () => {
    state.isConnected = false;
    schedule();
    // The browser tries again after a lost connection, but not after an answer such as 502.
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, RETRY);
  });
  for (const name of ['keys', 'status']) {
    source.addEventListener(name, ({ data }) => {
      state.isConnected = true;
      state.apply(name, JSON.parse(data));
      schedule();
    });
  }
}

connect();
setInterval(schedule, TICK);
