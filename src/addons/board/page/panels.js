// What stands around the table.

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
  if (isInProcess) {
    const { timeouts, refused, lost } = state.counted;
    figures.push(['timeouts\u00A0*', number(timeouts), timeouts > 0 ? 'warm' : '']);
    figures.push(['stale writes refused\u00A0*', number(refused), refused > 0 ? 'bad' : '']);
    figures.push(['leases lost\u00A0*', number(lost), lost > 0 ? 'bad' : '']);
  }
  byId('note').hidden = !isInProcess;
  once('figures', figures, () =>
    figures.map(([name = '', value = '', kind = '']) =>
      element('div', { class: kind }, element('dt', {}, name), element('dd', {}, value)),
    ),
  );
}

/** @param {NonNullable<State['status']>} status */
function drawTrouble({ trouble, missing, seenAt }) {
  // Without trouble each status has another time.
  once('trouble', [trouble, missing, trouble && seenAt], () => {
    const banners = missing.map((text) => banner('Not all keys are here.', text));
    if (trouble) {
      const shows = seenAt === undefined ? '' : `What you see is from ${clock(seenAt)}. `;
      banners.unshift(banner('The keys cannot be read:', `${trouble.text}. ${shows}The board tries again.`));
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
      const text = remedy === undefined ? message : `${message} What to do: ${remedy}`;
      const kind = status === 'fault' ? 'bad' : 'warning';
      list.append(
        element(
          'li',
          { class: `dot ${kind}` },
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
    return [chart, element('p', { class: 'quiet' }, `${label}.`)];
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
  const inRedis = state.hello?.inMemory ? '' : `about ${commands} a second in Redis and `;
  write(
    byId('cost'),
    `The servers are read only while this page is open, once for all who have it open: every ${duration(interval)}, ` +
      `${inRedis}${counted(Math.ceil(looks), 'statement', 'statements')} a second in Postgres. ` +
      `The last read took ${duration(took)}. The board has no login of its own.`,
  );
}

/** @param {State['tokens'][number]} passed */
function tokenItem({ key, token, turns, at }) {
  const text = turns > 1 ? `${token} (+${turns})` : token;
  return element('li', {}, element('time', {}, clock(at)), shown(key), element('span', {}, text));
}

/** @param {State['happened'][number]} happening */
function happeningItem({ type, bad, at, key, text }) {
  const what = element('span', { class: 'what' }, type.replaceAll('-', ' '));
  const item = element('li', { class: `event ${bad ? 'bad' : 'good'}` }, element('time', {}, clock(at)), what);
  if (key !== undefined) item.append(element('span', { class: 'said' }, shown(key)));
  item.append(element('span', { class: 'said' }, shown(text)));
  return item;
}

/** @param {import('./state.js').Server} server */
function serverItem({ address, role, status, healthy }) {
  return element(
    'li',
    {},
    element('span', { class: `mono dot ${healthy ? 'good' : 'bad'}` }, shown(address)),
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
