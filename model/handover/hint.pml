/*
 * The hint ahead of a COMMIT, and Postgres as far as it matters for that.
 *
 * The key's row serializes the transactions: one has it from its admission to its end. Its work ends, the hint is sent,
 * and COMMIT follows as a step of its own. Between the two the process may be frozen or killed, may lose its lease, may
 * roll back, or Postgres ends the transaction, or refuses the COMMIT. A handle is admitted without keeping the row:
 * `beside_a_handle` says that somebody works beside it. `ahead_in_vain`: where nothing fails, one who works ahead of its
 * lease does not get it. `offered_to_nobody`: where nothing fails, the lease is offered to a holder id that waits no more,
 * which costs the time of an offer.
 *
 * A holder of the lease is admitted and sends the hint in one step: until the hint, nobody can tell whether it has the row.
 * A hint is handled at any time after that, or never. Whoever handles it is admitted when nobody has the row, however the
 * transaction before it has ended. If that was not the one that the hint names, it has the row in vain: it rolls back, or
 * uses the transaction when it gets the lease in its turn. So does a caller of several keys, behind any hint.
 *
 * A lease of which a hint was sent is released where other callers of the process wait, and not yielded: where `yield` finds
 * nobody in the queue, the holder would go on under the id that the hint has named. That stays so if its COMMIT is refused.
 *
 * With LEASE_TIMES_DIFFER, a takeover may be for a shorter time than the former lease still had. Then it is published like an
 * offer, and those who hear that look within two seconds, whatever time it tells.
 *
 * Broken on purpose:
 *
 *   HINT_OF_ANY_TURN      the work begins whoever was admitted before
 *   HINT_BY_NUMBER        the hint tells a number, which a refused COMMIT gives back: the next one that commits has it
 *   ROLLED_BACK_COUNTS    the work begins behind the transaction that the hint names, even if that was rolled back
 *   PROMISE_KEPT          behind a hint and a refused COMMIT, the lease waits to be taken over, and is not released
 *   RETRIES_AHEAD         with RETRIES: a call begins again before its lease is confirmed
 *   TAKEN_FROM_ANYBODY    the lease is taken over from whoever has it
 *   PLACE_KEPT            whoever takes it over keeps the place in the queue
 *   HINTED_LEASE_KEPT     behind a hint, the lease passes to a caller of the same process
 *   YIELDS_BEHIND_HINT    behind a hint, the lease is yielded, and kept if nobody is in the queue
 *   SILENT_TAKEOVER       a takeover for a shorter time tells nobody
 *   NOT_ASKED_AGAIN       a look that was sent before the admission is not made again
 *   OLD_ANSWER_COUNTS     it is made again only if its answer names the former holder. An older one names a third
 *   ASKS_BEHIND_RELEASE   it is made again even if the turn is over, and leaves a place in the queue that nobody removes
 *   UNSUBSCRIBED_AHEAD    the subscription is closed before that look is executed: the release passes over the process
 */
#ifndef HINT
#define at_end(p) false
#define may_end(p) true
#define may_yield(p) true
#define never_asked(p) true
#define asks_late(p) false
#define forget_hint(p) skip
#define look_ends(p) skip
#define answer_comes(p) skip
#define goes_on(p) skip
#define offer_is_for_somebody(e) skip
#define retire(p, as) skip
#else

byte row = NOBODY;                /* whose transaction has the key's row */

/* What has become of the transaction that a hint tells; 0: there is no hint. */
#define COMING 1                  /* it has the row, and has not committed */
#define LAST 2                    /* it has committed, and nobody was admitted since */
#define NEVER 3                   /* it was rolled back, or somebody has committed since */
byte hinted[PROCESSES];           /* by the hint to this process */
byte untold[PROCESSES];           /* by the hint of this process, which is sent behind a look */
byte former[PROCESSES] = NOBODY;  /* the holder that the hint names */

#define NO_WORK 0
#define AT_WORK 1                 /* in a transaction */
#define COMMITTING 2              /* the work has ended and the hint is sent: COMMIT is next, or on its way */
#define AT_END 3                  /* the work has committed, or failed: the lease is released next */
#define HANDLE 4                  /* has an admitted handle, and with it no transaction */
#define IN_VAIN 5                 /* waits, in a transaction that was begun by a hint and may not go ahead */
byte work[PROCESSES];
bool promised[PROCESSES];         /* has sent a hint under its lease, where that matters */

/* How a process that is AHEAD asks for the lease. */
#define WITH_FORMER 1             /* a look that names the former holder */
#define WITHOUT 2                 /* a look that was sent before the admission */
#define ANSWERED 3                /* such a look was answered, and the answer is on its way */
#define AGAIN 4                   /* a look that names the former holder, behind that answer; it enters no queue */
byte asks[PROCESSES];
#ifdef OLD_ANSWER_COUNTS
byte seen[PROCESSES] = NOBODY;    /* who had the lease, by the look whose answer is on its way */
#endif
#define NONE 253
byte late[PROCESSES] = NONE;      /* such an answer comes behind the release: the former holder that the next look names */

bool beside_a_handle, ahead_in_vain, offered_to_nobody;

#define at_end(p) (work[p] == AT_END)
#ifdef PROMISE_KEPT
#define may_end(p) ((work[p] == AT_END && !(promised[p] && lease == p)) || work[p] == HANDLE)
#else
#define may_end(p) (work[p] == AT_END || work[p] == HANDLE)
#endif
#if defined(HINTED_LEASE_KEPT) || defined(YIELDS_BEHIND_HINT)
#define may_yield(p) (work[p] == AT_END)
#else
#define may_yield(p) (work[p] == AT_END && !promised[p])
#endif
#define never_asked(p) (work[p] == NO_WORK)
#ifdef HANDLES
#define is_of_handle(p) (p == PROCESSES - 1)
#else
#define is_of_handle(p) false
#endif
#define asks_late(p) (late[p] != NONE)

inline forget_hint(p) {
  hinted[p] = 0; former[p] = NOBODY; asks[p] = 0; work[p] = NO_WORK; untold[p] = 0; promised[p] = false;
  answer_comes(p);
  if :: row == p -> rolled_back() :: else fi
}

/* The process goes on under a new holder id. What it may have left in Redis stays under the old one. */
inline retire(p, as) {
  for (i : 0 .. PROCESSES - 1) {
    if :: former[i] == p -> former[i] = as :: else fi;
#ifdef OLD_ANSWER_COUNTS
    if :: seen[i] == p -> seen[i] = as :: else fi;
#endif
    if :: late[i] == p -> late[i] = as :: else fi
  }
  i = 0
}

/* hint.lua. Whether the message is handled at once, late or never is left to the one who hears it. */
inline tell_next(p, transaction) {
  if
  :: lease == p && waiting > 0 && queue[0] < PROCESSES ->
    entry = queue[0];
    if
    :: entry != p && hears(entry) && state[entry] != AHEAD && work[entry] != IN_VAIN ->
      hinted[entry] = transaction; former[entry] = p
    :: else
    fi;
    entry = 0
  :: else
  fi
}

/* The work has ended, and may commit. */
inline send_hint(p) {
  work[p] = COMMITTING;
#if defined(YIELD) || defined(PROMISE_KEPT)
  promised[p] = true;
#endif
  /* One connection: the look that was sent before is executed first. */
  if
  :: state[p] == AHEAD && asks[p] != ANSWERED -> untold[p] = COMING
  :: else -> tell_next(p, COMING)
  fi
}

/* Somebody has committed. */
inline count_turn() {
  for (i : 0 .. PROCESSES - 1) {
    if :: hinted[i] == LAST -> hinted[i] = NEVER :: hinted[i] == COMING -> hinted[i] = LAST :: else fi;
    if :: untold[i] == LAST -> untold[i] = NEVER :: untold[i] == COMING -> untold[i] = LAST :: else fi
  }
  i = 0
}

#ifdef ROLLED_BACK_COUNTS
#define ROLLED_BACK LAST
#else
#define ROLLED_BACK NEVER
#endif

/* The transaction that has the row ends without a COMMIT. */
inline rolled_back() {
  row = NOBODY;
#ifndef HINT_BY_NUMBER
  for (i : 0 .. PROCESSES - 1) {
    if :: hinted[i] == COMING -> hinted[i] = ROLLED_BACK :: else fi;
    if :: untold[i] == COMING -> untold[i] = ROLLED_BACK :: else fi
  }
  i = 0
#endif
}

inline commits(p) {
  row = NOBODY; work[p] = AT_END;
#ifdef PROMISE_KEPT
  promised[p] = false;
#endif
  count_turn()
}

/* Its admission waits for the row, and tells which one has committed before it. */
#define admitted(p) (hinted[p] != 0 && row == NOBODY)
#ifdef HINT_OF_ANY_TURN
#define admitted_next(p) admitted(p)
#else
#define admitted_next(p) (admitted(p) && hinted[p] == LAST)
#endif

inline not_beside_a_handle(p) {
  for (i : 0 .. PROCESSES - 1) {
    if :: i != p && work[i] == HANDLE && !excused[i] -> violated(beside_a_handle) :: else fi
  }
  i = 0
}

inline go_ahead(p) {
  row = p; work[p] = AT_WORK; hinted[p] = 0;
  not_beside_a_handle(p);
  served_in_order(p);
  timer[p] = UNARMED;
  state[p] = AHEAD
}

#ifdef LEASE_TIMES_DIFFER
bool is_shorter;                  /* the lease that a script takes over, than the former one; false between scripts */
#endif

#ifdef TAKEN_FROM_ANYBODY
#define is_former(p) (lease != NOBODY && lease != p)
#else
#define is_former(p) (lease != NOBODY && lease == former[p])
#endif

/* acquire.lua with `former`. */
inline take_over(p) {
#ifndef PLACE_KEPT
  remove_entry_of(p);
#endif
#ifdef LEASE_TIMES_DIFFER
  if :: is_shorter -> lease_changed() :: else fi;
#endif
  /* Nobody need be told otherwise: the sleepers' timers are armed by the former lease, which ends before this one. */
  lease_renewed();
  lease = p;
#ifdef LEASE_TIMES_DIFFER
#ifndef SILENT_TAKEOVER
  if :: is_shorter -> publish_turn() :: else fi;
#endif
  is_shorter = false;
#endif
  take(p)
}

/* The answer to the look that confirms the lease of one who is ahead. */
inline confirmed(p) {
  asks[p] = 0; former[p] = NOBODY;
  if :: untold[p] != 0 -> tell_next(p, untold[p]) :: else fi;
  untold[p] = 0
}

inline lose_the_lease(p) {
  asks[p] = 0; former[p] = NOBODY; untold[p] = 0;
  state[p] = WINDING_UP
}

#if defined(NOT_ASKED_AGAIN) || defined(OLD_ANSWER_COUNTS)
inline answer_decides(p) {
  if :: work[p] == AT_WORK -> violated(ahead_in_vain) :: else fi;
  lose_the_lease(p)
}
#endif

/* A look that was made for one whose turn is over: the answer before it came behind the release. */
inline look_late(p) {
  if
  :: lease != NOBODY && lease == late[p] ->
    /* It is released once more. */
    lease_renewed();
    lease = LEFT; offered = false
  :: lease == NOBODY -> release(LEFT)
  :: else ->
    /* Where other callers of its process wait, it enters the queue, and nothing removes that place. */
    if :: waiting <= PROCESSES -> queue[waiting] = LEFT; waiting++ :: else fi
  fi;
  late[p] = NONE
}

/* Where nothing fails, a place in the queue is of somebody who waits, or has gone ahead. */
inline offer_is_for_somebody(e) {
#if FAULTS == 0
  if :: e == LEFT || state[e] == HOLDING -> violated(offered_to_nobody) :: else fi
#else
  skip
#endif
}

/* A look of one who waits. */
inline look_ends(p) {
  if
  :: state[p] == HOLDING -> hinted[p] = 0; former[p] = NOBODY
#ifdef OLD_ANSWER_COUNTS
  :: else -> seen[p] = lease
#else
  :: else
#endif
  fi
}

inline answer_comes(p) {
#ifdef OLD_ANSWER_COUNTS
  seen[p] = NOBODY
#else
  skip
#endif
}

/* Behind a yield that has found nobody in the queue, the holder goes on under the same id. */
inline goes_on(p) {
  work[p] = NO_WORK
}
#endif
