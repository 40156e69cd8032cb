const AROUND = 3;

type Step = readonly [kind: ' ' | '-' | '+', line: string];

/** A unified diff of two versions of a file; empty if they are equal. If `before` is undefined, the file is new. */
export function difference(path: string, before: string | undefined, after: string): string {
  const steps = script(lines(before ?? ''), lines(after));
  const hunks = changedRanges(steps).map(([from, to]) => hunk(steps, from, to));
  if (hunks.length === 0) return '';
  return [before === undefined ? '--- /dev/null' : `--- a/${path}`, `+++ b/${path}`, ...hunks].join('\n');
}

function lines(text: string): string[] {
  // Carriage returns are removed, because they would garble a terminal.
  return text === '' ? [] : text.replace(/\n$/, '').split(/\r?\n/);
}

/** The edit script: a longest common subsequence of the part that differs. */
function script(before: string[], after: string[]): Step[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  let end = 0;
  while (
    end < before.length - start &&
    end < after.length - start &&
    before[before.length - 1 - end] === after[after.length - 1 - end]
  ) {
    end++;
  }
  const same = (line: string): Step => [' ', line];
  return [
    ...before.slice(0, start).map(same),
    ...middle(before.slice(start, before.length - end), after.slice(start, after.length - end)),
    ...before.slice(before.length - end).map(same),
  ];
}

function middle(before: string[], after: string[]): Step[] {
  const width = after.length + 1;
  const longest = new Uint32Array((before.length + 1) * width);
  const at = (row: number, column: number) => longest[row * width + column] ?? 0;
  for (let row = before.length - 1; row >= 0; row--) {
    for (let column = after.length - 1; column >= 0; column--) {
      longest[row * width + column] =
        before[row] === after[column]
          ? at(row + 1, column + 1) + 1
          : Math.max(at(row + 1, column), at(row, column + 1));
    }
  }
  const steps: Step[] = [];
  let row = 0;
  let column = 0;
  for (;;) {
    const old = before[row];
    const fresh = after[column];
    if (old !== undefined && old === fresh) {
      steps.push([' ', old]);
      row++;
      column++;
    } else if (old !== undefined && (fresh === undefined || at(row + 1, column) >= at(row, column + 1))) {
      steps.push(['-', old]);
      row++;
    } else if (fresh !== undefined) {
      steps.push(['+', fresh]);
      column++;
    } else {
      return steps;
    }
  }
}

/** The changed ranges with their context lines. Ranges that touch are merged. */
function changedRanges(steps: readonly Step[]): [number, number][] {
  const ranges: [number, number][] = [];
  steps.forEach(([kind], index) => {
    if (kind === ' ') return;
    const from = Math.max(0, index - AROUND);
    const to = Math.min(steps.length, index + AROUND + 1);
    const last = ranges.at(-1);
    if (last !== undefined && from <= last[1]) last[1] = to;
    else ranges.push([from, to]);
  });
  return ranges;
}

function hunk(steps: readonly Step[], from: number, to: number): string {
  const count = (part: readonly Step[], without: '-' | '+') => part.filter(([kind]) => kind !== without).length;
  const part = steps.slice(from, to);
  const range = (without: '-' | '+') => {
    const length = count(part, without);
    const first = count(steps.slice(0, from), without) + (length === 0 ? 0 : 1);
    return `${first},${length}`;
  };
  return [`@@ -${range('+')} +${range('-')} @@`, ...part.map(([kind, line]) => kind + line)].join('\n');
}
