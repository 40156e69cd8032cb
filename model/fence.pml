/*
 * The truth in Postgres: what an admission, a handle and the rule of the outcome make sure of.
 *
 * Redis does not appear. A lease may vanish at any moment, so it is taken to have vanished already: any number of
 * workers believe that they hold a key. A frozen or killed holder is one that goes no further; Postgres may end its
 * transaction at any moment.
 *
 *   LOCKERS HANDLES       workers that call withLock, and that hold a handle
 *   TURNS                 locks that each worker takes; a handle runs two transactions
 *   KEYS                  1 or 2; with 2, the first worker takes both, the second key 1 and the rest key 0,
 *                         or each of them both: BOTH_KEYS
 *   BREAKS                transactions that Postgres ends by itself
 *   CRASHES GCS FAILOVERS how many of each
 *   LOSSES                COMMITs whose answer is lost
 *   NO_FLOOR              gc takes rows that somebody still waits for or asks about: no floor of one day
 *   REPEATABLE_READ       instead of READ COMMITTED
 *
 * Broken on purpose: NO_FENCE ROW_CONDITION_ONLY KEY_ROW_ONLY_CHECKED KEY_ROW_ONLY_LOCKED TOKEN_BEFORE_ROW
 * TOKEN_WITHOUT_HOLDER STATUS_ALONE HOLDER_IN_HISTORY KEYS_UNSORTED
 */
#ifndef LOCKERS
#define LOCKERS 3
#endif
#ifndef HANDLES
#define HANDLES 0
#endif
#ifndef TURNS
#define TURNS 1
#endif
#ifndef KEYS
#define KEYS 1
#endif
#ifndef BREAKS
#define BREAKS 0
#endif
#ifndef CRASHES
#define CRASHES 0
#endif
#ifndef GCS
#define GCS 0
#endif
#ifndef FAILOVERS
#define FAILOVERS 0
#endif
#ifndef LOSSES
#define LOSSES 0
#endif
#define WORKERS (LOCKERS + HANDLES)
#define REMEMBERED 2              /* 16 in the product: fewer bring its end into reach */
#define NOBODY 0

/* ---- what is committed ---- */
typedef Committed {
  bool exists[KEYS];              /* the key's row of fenced_lock.admission */
  byte token[KEYS];
  byte holder[KEYS];
  byte born[KEYS];
  byte turns[KEYS];
  byte newest[KEYS], second[KEYS];  /* attempts */
  byte writes[KEYS];              /* the data under the key: how often it was written */
  byte fence[KEYS];
  byte sequence;
  byte xid;                       /* the last one given out */
  int commits;                    /* xids that have committed, as a set */
  int held;                       /* attempts that have committed, as a set: not known to anybody */
  byte last_token[KEYS], last_holder[KEYS];  /* of the last commit: memory that gc does not reach */
}
Committed db;
#if FAILOVERS > 0
Committed replica;
#endif
byte flushed_sequence, flushed_xid;  /* what a crash leaves: all that was logged before the last commit */
byte epoch, epochs;                  /* the one unlogged row; 0: none */

/* ---- open transactions ---- */
byte key_row[KEYS];                  /* who has locked it: worker + 1 */
byte data_row[KEYS];
bool open[WORKERS];
byte xid_of[WORKERS];
byte crashes, gcs, failovers, losses, breaks;
byte concerned;                      /* who waits for a key's row, or asks for an outcome: in no case for a day */
byte k, w;                           /* of steps that cannot be interrupted; zero between them */

/* ---- what must hold ---- */
bool lost_update, out_of_order, wrong_ok, wrong_rolled_back, healthy_work_refused;
#define violated(what) what = true; assert(!what)

inline unlock(whose) {
  for (w : 0 .. KEYS - 1) {
    if :: key_row[w] == whose + 1 -> key_row[w] = NOBODY :: else fi;
    if :: data_row[w] == whose + 1 -> data_row[w] = NOBODY :: else fi
  }
  w = 0
}

inline end_transaction(whose) {
  open[whose] = false; xid_of[whose] = 0;
  unlock(whose)
}

inline end_all_transactions() {
  for (k : 0 .. WORKERS - 1) { end_transaction(k) }
  k = 0
}

inline draw(into) { db.sequence++; into = db.sequence }

/* ---- a worker ---- */
#define key_at(place) (keys_reversed -> (KEYS - 1 - (place)) : (place))

inline begin() {
  d_step { open[me] = true; attempt++; xid = 0; epoch_seen = epoch }
}

inline give_xid() {
  if :: xid == 0 -> db.xid++; xid = db.xid; xid_of[me] = xid :: else fi
}

/* UPDATE the key's row with a new token; if there is none, INSERT it with token 0 and UPDATE again. */
inline admit_with_new_token() {
  place = first;
  do
  :: place <= last ->
    key = key_at(place);
    d_step {
      concerned++;
      was = (db.exists[key] -> db.token[key] : 0);
#ifdef REPEATABLE_READ
      if :: place == first -> for (k : first .. last) { seen[k] = db.writes[k] }; k = 0 :: else fi;
#endif
      /* An INSERT reads the sequence before it may have to wait for another's row of this key. */
      born[key] = (db.exists[key] -> 0 : db.sequence);
#ifdef TOKEN_BEFORE_ROW
      draw(token[key]);
#endif
    }
again:
    atomic {
      (!open[me] || key_row[key] == NOBODY) ->
      if
      :: open[me] ->
        give_xid();
        key_row[key] = me + 1
      :: else
      fi;
      concerned--
    }
    if
    :: atomic { !open[me] -> skip }; goto interrupted
    :: atomic { open[me] && !db.exists[key] && was != 0 ->
        /* Deleted in between, so nothing was updated: on to the INSERT. */
        key_row[key] = NOBODY; was = 0; born[key] = db.sequence; concerned++ }; goto again
    :: atomic { open[me] && (db.exists[key] || was == 0) ->
#ifdef REPEATABLE_READ
        conflict = (was != (db.exists[key] -> db.token[key] : 0));
#endif
        if :: db.exists[key] -> born[key] = db.born[key] :: else fi;
        turn = (db.exists[key] -> db.turns[key] : 0) + 1;
#ifdef TOKEN_BEFORE_ROW
        /* ON CONFLICT DO UPDATE draws anew; a row that is inserted has the token that was drawn for it. */
        if :: db.exists[key] -> draw(token[key]) :: else fi
#else
        draw(token[key])
#endif
      }
    fi;
#ifdef REPEATABLE_READ
    if :: conflict -> conflict = false; goto rolled_back :: else fi;
#endif
    place++
  :: else -> break
  od;
  atomic { place = 0; key = 0; was = 0 }
}

#ifdef KEY_ROW_ONLY_LOCKED
/* SELECT … FOR UPDATE: the row keeps its version, so a late snapshot meets no conflict. */
inline admit_by_lock() {
  d_step { for (k : first .. last) { seen[k] = db.writes[k] } k = 0 }
  atomic { (!open[me] || key_row[first] == NOBODY) ->
    if :: !open[me] -> goto interrupted :: else -> key_row[first] = me + 1 fi }
  d_step { if :: open[me] -> give_xid(); draw(token[first]) :: else fi }
}
#endif

/* A handle's transaction: UPDATE the key's row WHERE token and holder are ours. */
#ifdef TOKEN_WITHOUT_HOLDER
#define is_ours(k) (db.exists[k] && db.token[k] == token[k])
#else
#define is_ours(k) (db.exists[k] && db.token[k] == token[k] && db.holder[k] == holder)
#endif
inline admit_handle() {
  place = first;
  do
  :: place <= last ->
    atomic {
#ifndef KEY_ROW_ONLY_CHECKED
      (!open[me] || key_row[place] == NOBODY || !db.exists[place]) ->
#endif
      if
      :: !open[me] -> goto interrupted
      :: open[me] && !is_ours(place) -> goto stale
      :: open[me] && is_ours(place) ->
        d_step {
          give_xid();
#ifndef KEY_ROW_ONLY_CHECKED
          key_row[place] = me + 1;
#endif
          turn = db.turns[place] + 1; place++ }
      fi
    }
  :: else -> break
  od;
  place = 0
}

/* Reads each key's data, then writes it, in statements of their own. */
inline work() {
#if !defined(REPEATABLE_READ) && !defined(KEY_ROW_ONLY_LOCKED)
  d_step {
    if
#if FAILOVERS == 0
    :: carried                    /* a handle may keep in mind what it has read in its transaction before */
#endif
    :: else -> for (k : first .. last) { seen[k] = db.writes[k] } k = 0
    fi }
#endif
  place = first;
  do
  :: place <= last ->
    atomic { (!open[me] || data_row[place] == NOBODY) ->
      if
      :: !open[me] -> goto interrupted
#ifndef NO_FENCE
      :: open[me] && db.fence[place] > token[last] ->
#ifndef ROW_CONDITION_ONLY
        violated(healthy_work_refused);
#endif
        goto stale
      :: open[me] && db.fence[place] <= token[last] -> d_step { give_xid(); data_row[place] = me + 1; place++ }
#else
      :: open[me] -> d_step { give_xid(); data_row[place] = me + 1; place++ }
#endif
      fi
    }
  :: else -> break
  od;
  place = 0
}

/* Postgres's side of COMMIT. */
inline commit(writing) {
  for (k : first .. last) {
#if !defined(NO_FENCE) && !defined(ROW_CONDITION_ONLY)
    if
    :: !is_handle || !writing ->
      db.exists[k] = true; db.token[k] = token[k]; db.holder[k] = holder; db.born[k] = born[k]
    :: else
    fi;
    if
    :: db.exists[k] ->
      db.turns[k]++;
      db.second[k] = db.newest[k];
#ifdef HOLDER_IN_HISTORY
      db.newest[k] = holder
#else
      db.newest[k] = attempt
#endif
    :: else
    fi;
#endif
    if
    :: writing ->
      if :: seen[k] != db.writes[k] -> violated(lost_update) :: else fi;
      db.writes[k]++;
#ifndef NO_FENCE
      db.fence[k] = token[last]
#endif
    :: else
    fi;
#if !defined(NO_FENCE)
    if
    :: token[last] < db.last_token[k] || (token[last] == db.last_token[k] && holder != db.last_holder[k]) ->
#if !defined(ROW_CONDITION_ONLY) && !defined(KEY_ROW_ONLY_CHECKED)
      violated(out_of_order)
#endif
    :: else
    fi;
    db.last_token[k] = token[last]; db.last_holder[k] = holder
#endif
  }
  k = 0;
  db.held = db.held | (1 << attempt);
  db.commits = db.commits | (1 << xid);
  flushed_sequence = db.sequence; flushed_xid = db.xid;
  end_transaction(me)
}

/* What is known of a COMMIT without an answer. Its backend is ended first, so it does not arrive any more. */
#define same_epoch (epoch_seen != 0 && epoch_seen == epoch)
#define in_progress (xid_of[0] == xid || xid_of[1 % WORKERS] == xid || xid_of[2 % WORKERS] == xid || \
  xid_of[3 % WORKERS] == xid)
#ifdef HOLDER_IN_HISTORY
#define remembered (db.newest[last] == holder || db.second[last] == holder)
#else
#define remembered (db.newest[last] == attempt || db.second[last] == attempt)
#endif
inline find_outcome() {
  d_step { concerned++; if :: open[me] -> end_transaction(me) :: else fi }
  atomic {
    concerned--;
    if
    :: xid > db.xid -> goto rolled_back                       /* this server never gave it out */
    :: xid <= db.xid && in_progress ->
      if
      :: epoch_seen == 0 || same_epoch -> goto unknown        /* the product looks again */
      :: else -> goto rolled_back
      fi
    :: xid <= db.xid && !in_progress && !(db.commits & (1 << xid)) -> goto rolled_back
#ifdef STATUS_ALONE
    :: xid <= db.xid && !in_progress && (db.commits & (1 << xid)) -> goto ok
#else
    :: xid <= db.xid && !in_progress && (db.commits & (1 << xid)) ->
      if
      :: same_epoch -> goto ok
      :: !same_epoch && (!db.exists[last] || db.born[last] >= token[last]) -> goto unknown
      :: !same_epoch && db.exists[last] && db.born[last] < token[last] ->
        if
        :: remembered -> goto ok
        :: !remembered && db.turns[last] < turn + REMEMBERED -> goto rolled_back
        :: !remembered && db.turns[last] >= turn + REMEMBERED -> goto unknown
        fi
      fi
#endif
    fi
  }
}

proctype worker(byte me, first, last; bool is_handle, keys_reversed) {
  byte token[KEYS], born[KEYS], seen[KEYS];
  byte holder, attempt, xid, epoch_seen, turn, locks, transactions, key, place, was;
  bool carried, conflict;
  attempt = me * 4;

next_lock:
  if :: locks == TURNS -> goto done :: else -> locks++ fi;
  holder = attempt + 1;
#ifdef ROW_CONDITION_ONLY
  d_step { draw(token[last]) }
#endif
  begin();
#if defined(NO_FENCE) || defined(ROW_CONDITION_ONLY) || defined(KEY_ROW_ONLY_LOCKED)
next_transaction:                 /* these variants have no handles */
#ifdef KEY_ROW_ONLY_LOCKED
  admit_by_lock();
#endif
#else
  admit_with_new_token();
  if
  :: is_handle ->
    /* Registered in its own commit: only then is the token shown to anybody. */
    atomic { if :: open[me] -> d_step { commit(false) } :: else -> goto interrupted fi };
next_transaction:
    if :: transactions == 2 -> goto lock_ended :: else -> transactions++ fi;
    begin();
    admit_handle()
  :: else
  fi;
#endif
  work();

  /* COMMIT is sent. */
  atomic {
    if
    :: open[me] -> d_step { commit(true); for (k : first .. last) { seen[k]++ } k = 0; carried = is_handle };
      if
      :: goto ok
#if LOSSES > 0
      :: losses < LOSSES -> losses++; goto unanswered
#endif
      fi
#if LOSSES > 0
    :: open[me] && losses < LOSSES -> losses++; goto unanswered   /* has not arrived */
#endif
    :: !open[me] -> goto unanswered
    fi
  }

unanswered:
  find_outcome();

ok:
  atomic {
#if FAILOVERS == 0
    if :: !(db.held & (1 << attempt)) -> violated(wrong_ok) :: else fi;
#endif
    if :: is_handle -> goto next_transaction :: else -> goto lock_ended fi }
interrupted:
rolled_back:
  atomic {
    if :: open[me] -> d_step { end_transaction(me) } :: else fi;
    if :: db.held & (1 << attempt) -> violated(wrong_rolled_back) :: else fi;
    if
    :: is_handle && transactions > 0 -> goto next_transaction
    :: else -> goto lock_ended
    fi }
stale:
  atomic {
    d_step { end_transaction(me) };
    if :: db.held & (1 << attempt) -> violated(wrong_rolled_back) :: else fi;
    goto lock_ended }
unknown:
lock_ended:
  atomic {
    turn = 0; transactions = 0; place = 0; key = 0; was = 0; carried = false; xid = 0; epoch_seen = 0;
    d_step { for (k : 0 .. KEYS - 1) { token[k] = 0; born[k] = 0; seen[k] = 0 } k = 0 } }
  goto next_lock;
done:
  skip
}

/* Ended by Postgres: idle for too long, terminated, its client gone. */
proctype backend(byte whose) {
end:
  do :: d_step { breaks < BREAKS && open[whose] -> breaks++; end_transaction(whose) } od
}

inline copy(from, to) {
  for (k : 0 .. KEYS - 1) {
    to.exists[k] = from.exists[k]; to.token[k] = from.token[k]; to.holder[k] = from.holder[k];
    to.born[k] = from.born[k]; to.turns[k] = from.turns[k];
    to.newest[k] = from.newest[k]; to.second[k] = from.second[k];
    to.writes[k] = from.writes[k]; to.fence[k] = from.fence[k];
    to.last_token[k] = from.last_token[k]; to.last_holder[k] = from.last_holder[k]
  }
  k = 0;
  to.sequence = from.sequence; to.xid = from.xid; to.commits = from.commits; to.held = from.held
}

inline delete_idle(of_key) {
  db.exists[of_key] = false; db.token[of_key] = 0; db.holder[of_key] = 0; db.born[of_key] = 0;
  db.turns[of_key] = 0; db.newest[of_key] = 0; db.second[of_key] = 0;
  flushed_sequence = db.sequence; flushed_xid = db.xid
}

#ifdef NO_FLOOR
#define idle(key) (db.exists[key] && key_row[key] == NOBODY)
#else
#define idle(key) (db.exists[key] && key_row[key] == NOBODY && concerned == 0)
#endif

proctype server() {
end:
  do
  :: false
#if LOSSES > 0 || CRASHES > 0 || FAILOVERS > 0
  :: d_step { epoch == 0 && epochs <= CRASHES + FAILOVERS -> epochs++; epoch = epochs }
#endif
#if CRASHES > 0
  /* What was not flushed was never there, numbers that were given out included: they are given out again. */
  :: d_step { crashes < CRASHES ->
      crashes++;
      end_all_transactions();
      db.sequence = flushed_sequence; db.xid = flushed_xid; epoch = 0 }
#endif
#if GCS > 0
  :: d_step { gcs < GCS && idle(0) -> gcs++; delete_idle(0) }
#if KEYS > 1
  :: d_step { gcs < GCS && idle(1) -> gcs++; delete_idle(1) }
#endif
#endif
#if FAILOVERS > 0
  :: d_step { failovers < FAILOVERS -> copy(db, replica); replica.sequence = flushed_sequence; replica.xid = flushed_xid }
  :: d_step { failovers < FAILOVERS ->
      failovers++;
      end_all_transactions();
      copy(replica, db);
      copy(db, replica);
      flushed_sequence = db.sequence; flushed_xid = db.xid; epoch = 0 }
#endif
  od
}

init {
  atomic {
#if defined(KEY_ROW_ONLY_LOCKED)
    db.exists[0] = true;
#endif
    for (k : 0 .. WORKERS - 1) {
#if KEYS == 1
      run worker(k, 0, 0, k >= LOCKERS, false);
#elif defined(KEYS_UNSORTED)
      run worker(k, 0, 1, k >= LOCKERS, k == 0);
#elif defined(BOTH_KEYS)
      run worker(k, 0, 1, k >= LOCKERS, false);
#else
      if
      :: k == 0 -> run worker(k, 0, 1, k >= LOCKERS, false)
      :: k == 1 -> run worker(k, 1, 1, k >= LOCKERS, false)
      :: else -> run worker(k, 0, 0, k >= LOCKERS, false)
      fi;
#endif
#if BREAKS > 0
      run backend(k)
#endif
    }
    k = 0;
    run server()
  }
}
