import { waiterName } from '../locks/text.js';
import { escapeInvisible, visible } from '../visible.js';
import type { RefusedWrites, Sample, TopRow } from './sample.js';
import { shown, shownRefused, type TopState } from './state.js';
import { wrapped } from './wrap.js';

/** How a line is to stand out. */
type Emphasis = 'plain' | 'bold' | 'inverse' | 'dim';

export interface Line {
  readonly text: string;
  readonly emphasis: Emphasis;
}

/** A server, without users and passwords. */
export interface AskedPlace {
  readonly address: string;
  /** Where its URL was found, if that is to be said. */
  readonly from?: string | undefined;
}

/** What a screen shows besides its rows. */
export interface Surroundings {
  readonly width: number;
  readonly height: number;
  /** When the rows were read. */
  readonly at: Date;
  /** Whether the servers could not be asked since. */
  readonly isOld: boolean;
  /** What is wrong with the rows; empty if nothing is. */
  readonly trouble: string;
  readonly asked: readonly AskedPlace[];
}

const HEADINGS = ['KEY', 'TURNS/S', 'WAITING', 'LEASE LEFT', 'TRANSACTION', 'HOLDER', 'NEXT'];
const HELP = 'up/down select   s sort   / filter   x force release   q quit';
/** The widest that a key is shown. */
const WIDEST_KEY = 40;
/** Lines that are no rows: what is shown, and the headings. The servers and the last lines come besides. */
const OTHERS = 2;
/** The part of the screen that a message may have, and that of what is wrong with the rows. */
const MESSAGE_PART = 1 / 3;
const TROUBLE_PART = 1 / 6;
const BETWEEN = '   ';
/** In place of a holder that has not taken its lease yet. */
const PASSING_ON = 'passing on';
/** Lower screens have room for rows alone. */
const LEAST_WITH_DETAILS = 12;
/** Lines that name those who wait for the selected key. */
const MOST_WAITER_LINES = 3;
/** How many of the refused writes are shown. */
const MOST_REFUSED_LINES = 3;

/** All lines of the screen. */
export function screen(
  { rows, refused }: Pick<Sample, 'rows' | 'refused'>,
  state: TopState,
  { width, height, at, isOld, trouble, asked }: Surroundings,
): readonly Line[] {
  const list = shown(rows, state);
  const last = bottom(state, width, height);
  const troubles = trouble === '' ? [] : wrapped(trouble, width, Math.max(1, Math.floor(height * TROUBLE_PART)));
  const places = asked.map((place) => placeText(place, state));
  // On one line, if that has room for them.
  const joined = places.join(BETWEEN);
  const servers = (joined.length <= width ? [joined] : places).map((text): Line => ({ text, emphasis: 'dim' }));
  const selected = list.findIndex(({ key }) => key === state.selected);
  const details =
    height < LEAST_WITH_DETAILS
      ? []
      : [...whoWaits(list[selected], width), ...lastRefused(shownRefused(refused, state))];
  const below = details.length + troubles.length + servers.length + last.length;
  const room = Math.max(1, height - OTHERS - below);
  // Whatever is selected is on the screen.
  const first = Math.max(0, Math.min(selected - Math.floor(room / 2), list.length - room));
  const page = list.slice(first, first + room);
  const [headings = '', ...lines] = table([HEADINGS, ...page.map(cells)]);
  const body = lines.map(
    (text, row): Line => ({ text, emphasis: page[row]?.key === state.selected ? 'inverse' : isOld ? 'dim' : 'plain' }),
  );
  const all: Line[] = [
    { text: `${isOld ? 'as of ' : ''}${summary({ rows, refused }, list, state, at)}`, emphasis: 'bold' },
    { text: headings, emphasis: 'dim' },
    ...body,
  ];
  while (all.length < height - below) all.push({ text: '', emphasis: 'plain' });
  all.push(...details.map((text): Line => ({ text, emphasis: 'plain' })));
  all.push(...troubles.map((text): Line => ({ text, emphasis: 'bold' })));
  // Directly above the question whether to take a key: it is taken in these servers.
  all.push(...servers, ...last);
  return all.slice(-height).map(({ text, emphasis }) => ({ text: text.slice(0, width), emphasis }));
}

/** The same once, for what is no terminal. */
export function printed(rows: readonly TopRow[], state: TopState): readonly string[] {
  return table([HEADINGS, ...shown(rows, state).map(cells)]);
}

function cells({
  key,
  heat,
  waiting,
  waiters,
  isInOrder,
  holder,
  isOffered,
  leaseLeft,
  transaction,
}: TopRow): string[] {
  return [
    cut(visible(key), WIDEST_KEY),
    heat === undefined ? '-' : heat.toFixed(1),
    String(waiting),
    holder === undefined ? '-' : seconds(leaseLeft),
    transaction === undefined ? '-' : `${seconds(transaction.age)} ${transaction.state ?? '(not shown to this role)'}`,
    holder === undefined ? '-' : isOffered === true ? PASSING_ON : visible(holder),
    waiters[0] === undefined || !isInOrder ? '-' : waiterName(waiters[0]),
  ];
}

/** The last writes that were refused as stale, the newest first. */
export function lastRefused(refused: RefusedWrites | undefined): readonly string[] {
  return (refused?.last ?? [])
    .slice(-MOST_REFUSED_LINES)
    .toReversed()
    .map(({ at, key, text, process }) => {
      return `Refused ${timeOf(new Date(at))} ${cut(visible(key), WIDEST_KEY)} by ${waiterName(process)}: ${escapeInvisible(text).replaceAll('\n', ' ')}`;
    });
}

/** Those who wait for this key, in their order if there is one: as many as fit into some lines, and the number of the others. */
function whoWaits(row: TopRow | undefined, width: number): readonly string[] {
  if (row === undefined || row.waiting === 0) return [];
  const lines = [`Waiting for ${cut(visible(row.key), WIDEST_KEY)}, in ${row.isInOrder ? '' : 'no '}order:`];
  for (const [at, name] of row.waiters.entries()) {
    const more = `, ${row.waiting - at} more`;
    const place = row.isInOrder ? `${at + 1} ${waiterName(name)}` : waiterName(name);
    const line = lines.at(-1) ?? '';
    const longer = `${line}${at === 0 ? ' ' : ', '}${place}`;
    if (longer.length + more.length <= width) lines[lines.length - 1] = longer;
    else if (lines.length < MOST_WAITER_LINES) lines.splice(-1, 1, at === 0 ? line : `${line},`, `  ${place}`);
    else return [...lines.slice(0, -1), `${line}${more}`];
  }
  const unnamed = row.waiting - row.waiters.length;
  return unnamed <= 0 ? lines : [...lines.slice(0, -1), `${lines.at(-1)}, ${unnamed} more`];
}

function table(rows: ReadonlyArray<readonly string[]>): string[] {
  const widths = rows.reduce<number[]>((all, row) => row.map(({ length }, at) => Math.max(all[at] ?? 0, length)), []);
  return rows.map((row) =>
    row
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

function summary(
  { rows, refused }: Pick<Sample, 'rows' | 'refused'>,
  list: readonly TopRow[],
  { sort, filter }: TopState,
  at: Date,
): string {
  const heat = rows.reduce((sum, row) => sum + (row.heat ?? 0), 0);
  const held = rows.filter(({ holder }) => holder !== undefined).length;
  const waiting = rows.reduce((sum, row) => sum + row.waiting, 0);
  const filtered = filter === '' ? '' : `   filter ${visible(filter)} (${list.length} of ${rows.length})`;
  const counts = `${held} held   ${waiting} waiting   ${heat.toFixed(1)} turns/s   ${refused?.last.length ?? '?'} refused`;
  return `${timeOf(at)}   ${counts}   sort ${sort}${filtered}`;
}

function bottom({ mode, asked, filter, message }: TopState, width: number, height: number): readonly Line[] {
  if (mode === 'filter')
    return [{ text: `Filter: ${visible(filter)}_   Enter keeps it, Escape drops it`, emphasis: 'bold' }];
  if (mode === 'list' && message === '') return [{ text: HELP, emphasis: 'dim' }];
  const text = asked !== undefined ? question(asked) : message;
  const most = Math.max(1, Math.floor(height * MESSAGE_PART));
  return wrapped(text, width, most).map((line) => ({ text: line, emphasis: 'bold' }));
}

function question({ key, holder, isOffered }: TopRow): string {
  const from = holder === undefined || isOffered === true ? '' : ` from ${visible(holder)}`;
  return `Take ${cut(visible(key), WIDEST_KEY)}${from}? An open transaction is rolled back. [y/N]`;
}

/** Where its URL was found matters to whoever is about to change something there. */
function placeText({ address, from }: AskedPlace, { mode }: TopState): string {
  return mode === 'confirm' && from !== undefined ? `${address} (from ${from})` : address;
}

/** To the second, in UTC. */
export function timeOf(at: Date): string {
  return `${at.toISOString().slice(11, 19)}Z`;
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, width - 3)}...`;
}
