/** One exhaustive search, and what it must come to. */
export interface Run {
  readonly name: string;
  readonly model: 'fence' | 'handover' | 'permits';
  /** Macros of the model: its size, its faults, and what is broken in it. */
  readonly defines: readonly string[];
  /** `holds`, or the violation that has to be found: a broken model that passes is a model that shows nothing. */
  readonly expected: 'holds' | Violation;
  /** `ends`: no execution goes on for ever. Otherwise: what the model asserts. */
  readonly asks?: 'ends';
  /** Takes minutes or gigabytes. */
  readonly large?: true;
}

type Violation =
  | 'lost_update'
  | 'out_of_order'
  | 'healthy_work_refused'
  | 'wrong_ok'
  | 'wrong_rolled_back'
  | 'deadlock'
  | 'two_holders'
  | 'out_of_turn'
  | 'asleep_beside_a_free_key'
  | 'unserved'
  | 'too_many'
  | 'beside_too_many'
  | 'asleep_beside_a_free_permit';

const EVERY_FAULT = ['KILL', 'FREEZE', 'DROP', 'FLUSH', 'EXPIRE', 'LOST', 'GIVE_UP', 'YIELD'];

const fence = (name: string, defines: string, expected: Run['expected'] = 'holds'): Run => ({
  name,
  model: 'fence',
  defines: defines.split(' '),
  expected,
});

const handover = (name: string, defines: string, expected: Run['expected'] = 'holds'): Run => ({
  name,
  model: 'handover',
  defines: defines.split(' '),
  expected,
});

const permits = (name: string, defines: string, expected: Run['expected'] = 'holds'): Run => ({
  name,
  model: 'permits',
  defines: defines.split(' '),
  expected,
});

const large = (run: Run): Run => ({ ...run, large: true });
const ends = (run: Run): Run => ({ ...run, asks: 'ends', name: `${run.name}: every run ends` });
const faults = (count: number) => `FAULTS=${count} ${EVERY_FAULT.join(' ')}`;

/** The protocol as it is. */
const INTACT: readonly Run[] = [
  fence('three that call withLock, each twice', 'LOCKERS=3 TURNS=2'),
  fence('withLock and two handles on one key, gc at any time', 'LOCKERS=1 HANDLES=2 GCS=1 NO_FLOOR'),
  fence(
    'withLock and a handle, transactions ended by Postgres, gc at any time',
    'LOCKERS=2 HANDLES=1 BREAKS=1 GCS=1 NO_FLOOR',
  ),
  fence('two keys, one each, a handle, gc at any time', 'LOCKERS=2 HANDLES=1 KEYS=2 GCS=1 NO_FLOOR'),
  fence('two keys taken by both at once', 'LOCKERS=2 KEYS=2 BOTH_KEYS TURNS=2 BREAKS=1'),
  fence(
    'withLock and a handle, both on two keys, gc at any time',
    'LOCKERS=1 HANDLES=1 KEYS=2 BOTH_KEYS GCS=1 NO_FLOOR',
  ),
  fence('two keys, lost COMMITs, a crash', 'LOCKERS=2 KEYS=2 BOTH_KEYS LOSSES=1 CRASHES=1'),
  fence('lost COMMITs, a crash, gc', 'LOCKERS=2 TURNS=2 LOSSES=1 CRASHES=1 GCS=1'),
  fence('lost COMMITs of a handle, a crash, gc', 'LOCKERS=1 HANDLES=1 LOSSES=2 CRASHES=1 GCS=1 BREAKS=1'),
  fence('a failover that loses commits and numbers', 'HANDLES=2 LOCKERS=0 FAILOVERS=1'),
  fence('a failover, lost COMMITs', 'HANDLES=1 LOCKERS=1 FAILOVERS=1 LOSSES=1'),
  fence('repeatable read', 'LOCKERS=3 REPEATABLE_READ GCS=1 BREAKS=1'),
  large(fence('three, each twice, transactions ended by Postgres', 'LOCKERS=3 TURNS=2 BREAKS=1')),
  large(
    fence('withLock and two handles, ended by Postgres, gc at any time', 'LOCKERS=1 HANDLES=2 BREAKS=1 GCS=1 NO_FLOOR'),
  ),
  large(
    fence('withLock twice and a handle, lost COMMITs, a crash, gc', 'LOCKERS=2 HANDLES=1 LOSSES=1 CRASHES=1 GCS=1'),
  ),
  large(fence('withLock and two handles, a failover', 'LOCKERS=1 HANDLES=2 FAILOVERS=1')),
  handover('three processes, each twice, no faults', 'TURNS=2 GIVE_UP YIELD'),
  handover('four processes, no faults', 'PROCESSES=4 GIVE_UP'),
  handover('three processes, any fault', faults(1)),
  handover('two processes, each twice, any two faults', `PROCESSES=2 TURNS=2 ${faults(2)}`),
  handover('three processes, frozen or deaf or flushed, two faults', 'FAULTS=2 FREEZE DROP FLUSH'),
  ends(handover('two processes, any two faults', `PROCESSES=2 ${faults(2)}`)),
  large(ends(handover('three processes, each twice', 'TURNS=2 GIVE_UP YIELD'))),
  large(ends(handover('three processes, any fault', faults(1)))),
  large(handover('two processes, any three faults', `PROCESSES=2 ${faults(3)}`)),
  large(handover('four processes, one frozen or killed', 'PROCESSES=4 FAULTS=1 FREEZE KILL')),
  large(handover('three processes, any two faults', faults(2))),
  permits('four calls, two permits', 'PROCESSES=4 GIVE_UP'),
  permits('four calls with different numbers', 'PROCESSES=4 MOST0=1 MOST1=3 MOST2=3 MOST3=2 GIVE_UP'),
  permits('different numbers, leases that end early, a flush', 'MOST0=1 MOST1=3 MOST2=2 FAULTS=2 EXPIRE FLUSH GIVE_UP'),
  permits('two permits, leases that end early, a flush', 'PROCESSES=4 FAULTS=2 EXPIRE FLUSH GIVE_UP'),
];

/** One line of the protocol left out or changed: each has to be caught. */
const BROKEN: readonly Run[] = [
  fence('no fence at all', 'LOCKERS=2 NO_FENCE', 'lost_update'),
  fence('a token, and a condition on the row that is written', 'LOCKERS=2 ROW_CONDITION_ONLY', 'lost_update'),
  fence('the key row is read, not written', 'LOCKERS=0 HANDLES=2 KEY_ROW_ONLY_CHECKED', 'lost_update'),
  fence('the key row is locked, not written', 'LOCKERS=2 REPEATABLE_READ KEY_ROW_ONLY_LOCKED', 'lost_update'),
  fence(
    'the token is drawn before the row is had',
    'LOCKERS=3 GCS=1 NO_FLOOR TOKEN_BEFORE_ROW',
    'healthy_work_refused',
  ),
  fence('a handle is known by its token alone', 'LOCKERS=0 HANDLES=2 FAILOVERS=1 TOKEN_WITHOUT_HOLDER', 'out_of_order'),
  fence('the outcome by the status of the xid alone', 'LOCKERS=2 LOSSES=1 CRASHES=1 STATUS_ALONE', 'wrong_ok'),
  fence('the history is one of holders', 'LOCKERS=1 HANDLES=1 LOSSES=1 CRASHES=1 HOLDER_IN_HISTORY', 'wrong_ok'),
  fence(
    'the history of a row younger than the token',
    'LOCKERS=2 LOSSES=1 CRASHES=1 GCS=1 BORN_IGNORED',
    'wrong_rolled_back',
  ),
  fence(
    'a history that does not reach back is taken as whole',
    'LOCKERS=2 TURNS=2 LOSSES=1 CRASHES=1 HISTORY_TAKEN_AS_WHOLE',
    'wrong_rolled_back',
  ),
  fence('gc without a floor, and a lost COMMIT', 'LOCKERS=2 LOSSES=1 GCS=1 NO_FLOOR', 'wrong_rolled_back'),
  fence('gc without a floor, under repeatable read', 'LOCKERS=2 REPEATABLE_READ GCS=1 NO_FLOOR', 'lost_update'),
  fence('two keys in any order', 'LOCKERS=2 KEYS=2 BOTH_KEYS KEYS_UNSORTED', 'deadlock'),
  handover('only the named one is woken', `${faults(1)} WAKE_NAMED_ONLY`, 'asleep_beside_a_free_key'),
  handover('subscribed after the last look', 'GIVE_UP SUBSCRIBE_AFTER_LOOK', 'asleep_beside_a_free_key'),
  handover('deaf while a look is under way', `${faults(1)} DEAF_WHILE_LOOKING`, 'asleep_beside_a_free_key'),
  handover('who gives up keeps the offer', 'GIVE_UP GIVE_UP_KEEPS_OFFER', 'unserved'),
  handover('a renewal that finds nothing says nothing', `${faults(1)} SILENT_RENEWAL`, 'asleep_beside_a_free_key'),
  handover('a release that finds nothing says nothing', `${faults(1)} SILENT_RELEASE`, 'asleep_beside_a_free_key'),
  handover('no look after a reconnect', `${faults(1)} RECONNECT_WITHOUT_LOOK`, 'asleep_beside_a_free_key'),
  handover('a new entry goes to the front', 'LAST_COME_FIRST', 'out_of_turn'),
  handover('a release does not compare the holder', `${faults(1)} HOLDER_NOT_COMPARED`, 'two_holders'),
  permits('Postgres has no row for each permit', 'FAULTS=1 EXPIRE NO_ROW', 'too_many'),
  permits(
    'a lower number counts its own permits alone',
    'PROCESSES=4 MOST0=2 MOST1=3 MOST2=3 MOST3=3 COUNT_IGNORED',
    'beside_too_many',
  ),
  permits(
    'who can work passes the first of the queue',
    'PROCESSES=4 MOST0=1 MOST1=3 MOST2=3 MOST3=3 HEAD_IS_PASSED',
    'out_of_turn',
  ),
  permits('a new place is in front', 'PROCESSES=4 MOST0=1 MOST1=1 MOST2=1 MOST3=1 LAST_COME_FIRST', 'out_of_turn'),
  permits(
    'the first gives up, and says nothing',
    'PROCESSES=4 MOST0=1 MOST1=3 MOST2=3 MOST3=3 GIVE_UP GIVE_UP_SAYS_NOTHING',
    'asleep_beside_a_free_permit',
  ),
  permits(
    'one offer for each release',
    'PROCESSES=4 MOST0=1 MOST1=3 MOST2=3 MOST3=3 ONE_OFFER',
    'asleep_beside_a_free_permit',
  ),
];

/** What the protocol does not do, kept in sight. */
const LIMITS: readonly Run[] = [
  handover(
    'lease times that differ, FLUSHALL, a kill',
    'FAULTS=2 FLUSH KILL LEASE_TIMES_DIFFER',
    'asleep_beside_a_free_key',
  ),
  permits(
    'different numbers, and a flush: Redis does not know who is at work',
    'MOST0=2 MOST1=3 MOST2=3 FAULTS=1 EXPIRE OVERALL',
    'beside_too_many',
  ),
];

export const RUNS: readonly Run[] = [...INTACT, ...BROKEN, ...LIMITS];
