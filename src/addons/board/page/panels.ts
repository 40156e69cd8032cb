// What stands around the table.

import type { Status } from '../poller.js';
import type { Happened } from '../process.js';
import type { ServerState } from '../source.js';
import { bars } from './chart.js';
import type { Passed, State } from './state.js';
import { byId, clock, counted, duration, element, number, redraw, shown } from './text.js';

/** How long the longest bar of a wait is; columns. */
const LONGEST = 20;

export function drawPanels(state: State): void {
  const { status, tokens } = state;
  document.body.classList.toggle('stale', state.isOld);
  drawFigures(state);
  list('tokens', tokens, tokenItem, 'None since this page was opened.');
  if (status === undefined) return;
  const { happened } = status;
  byId('note').hidden = byId('waits-card').hidden = byId('happened-card').hidden = happened === undefined;
  if (happened) {
    list('happened', happened.events, happeningItem, 'Nothing since the board was opened.');
    drawWaits(happened.waits);
  }
  drawTrouble(status);
  drawHealth(status);
  list('postgres', status.postgres ? [status.postgres] : [], serverItem, 'Not known yet.');
  list('redis', status.redis, serverItem, 'Not known yet.');
  redraw(
    byId('cost'),
    'The servers are read only while this page is open, once for all who have it open: ' +
      `every ${duration(status.interval)}. The last read took ${duration(status.took)}.`,
  );
}

function list<T>(id: string, items: readonly T[], itemOf: (item: T) => Node, none: string): void {
  redraw(byId(id), items, () => (items.length === 0 ? [element('li', { class: 'quiet' }, none)] : items.map(itemOf)));
}

function drawFigures({ keys, seenAt, rate, status }: State): void {
  const known = seenAt !== undefined;
  const all = [...keys.values()];
  const waiting = all.reduce((sum, key) => sum + key.waiting, 0);
  const figures: (readonly [name: string, value: string, kind: string])[] = [
    ['keys held', known ? number(all.filter(({ holder }) => holder !== undefined).length) : '–', ''],
    ['processes waiting', known ? number(waiting) : '–', waiting > 0 ? 'warning' : ''],
    ['turns a second', known ? (rate < 10 ? rate.toFixed(1) : number(Math.round(rate))) : '–', ''],
  ];
  if (status?.happened) {
    const { timeouts, refused, lost } = status.happened;
    figures.push(['timeouts\u00A0*', number(timeouts), timeouts > 0 ? 'warning' : '']);
    figures.push(['stale writes refused\u00A0*', number(refused), refused > 0 ? 'bad' : '']);
    figures.push(['leases lost\u00A0*', number(lost), lost > 0 ? 'bad' : '']);
  }
  redraw(byId('figures'), figures, () =>
    figures.map(([name, value, kind]) =>
      element('div', { class: 'card' }, element('dt', {}, name), element('dd', { class: kind }, value)),
    ),
  );
}

function drawTrouble({ trouble }: Status): void {
  redraw(byId('trouble'), trouble, () => {
    if (trouble === undefined) return [];
    const title = element('strong', {}, 'The keys cannot be read:');
    return [element('p', { class: 'banner' }, title, ' ', shown(`${trouble}. The board tries again.`))];
  });
}

function drawHealth({ postgres, redis, trouble }: Status): void {
  const findings = [...(postgres ? [postgres] : []), ...redis].flatMap(({ findings }) => findings);
  redraw(byId('health'), [findings, trouble === undefined], () => {
    if (findings.length === 0) return ['Checking the servers …'];
    const faults = findings.filter(({ remedy }) => remedy !== undefined);
    const well = findings.filter(({ remedy }) => remedy === undefined).map(({ message }) => message);
    // In trouble the next check, which tells where it is, has not ended yet.
    const all = trouble === undefined ? 'All is well. ' : 'At the last check: ';
    const rest = well.length > 0 ? 'The rest is well. ' : '';
    const lines = faults.map(({ message, remedy }) =>
      element('p', { class: 'dot bad' }, element('strong', {}, 'Fault: '), shown(`${message} What to do: ${remedy}`)),
    );
    return [...lines, element('p', {}, element('strong', {}, faults.length === 0 ? all : rest), shown(well.join(' ')))];
  });
}

function drawWaits({ bounds, counts, longest }: Happened['waits']): void {
  redraw(byId('waits'), counts, () => {
    const most = Math.max(...counts);
    if (most === 0) return [element('li', { class: 'quiet' }, 'No call since the board was opened.')];
    const rows = counts.map((count, at) => {
      const bound = bounds[at];
      const tall = Math.ceil((count / most) * LONGEST);
      const bar = bars(Array(LONGEST).fill(1).fill(0, tall), 1, counted(count, 'wait'), 12);
      const label = bound === undefined ? 'longer' : `≤ ${duration(bound)}`;
      return element(
        'li',
        {},
        element('span', {}, label),
        element('span', {}, bar),
        element('span', {}, number(count)),
      );
    });
    return [...rows, element('li', { class: 'quiet' }, `The longest took ${duration(longest)}.`)];
  });
}

function tokenItem({ key, token, turns, at }: Passed): HTMLElement {
  const text = turns > 1 ? `${token} (+${turns})` : token;
  return element('li', {}, element('time', {}, clock(at)), shown(key), element('span', {}, text));
}

function happeningItem({ type, bad, at, key, text }: Happened['events'][number]): HTMLElement {
  return element(
    'li',
    { class: 'event' },
    element('time', {}, clock(at)),
    element('strong', { class: bad ? 'bad' : 'good' }, type.replaceAll('-', ' ')),
    ...(key === undefined ? [] : [element('span', { class: 'said' }, shown(key))]),
    element('span', { class: 'said' }, shown(text)),
  );
}

function serverItem({ address, role, status, healthy }: ServerState): HTMLElement {
  const place = element('span', { class: `mono dot ${healthy ? 'good' : 'bad'}` }, shown(address));
  return element('li', {}, place, ' ', shown(status), element('p', { class: 'quiet' }, shown(role)));
}
