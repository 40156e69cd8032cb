/* What is known of a COMMIT without an answer. Its backend is ended first, so it does not arrive any more. */
#define same_epoch (epoch_seen != 0 && epoch_seen == epoch)
#define in_progress (xid_of[0] == xid || xid_of[1 % WORKERS] == xid || xid_of[2 % WORKERS] == xid || \
  xid_of[3 % WORKERS] == xid)
#ifdef HOLDER_IN_HISTORY
#define remembered (db.newest[last] == holder || db.second[last] == holder)
#else
#define remembered (db.newest[last] == attempt || db.second[last] == attempt)
#endif
#ifdef BORN_IGNORED
#define predates(k) true
#else
#define predates(k) (db.born[k] < token[k])
#endif
#ifdef HISTORY_TAKEN_AS_WHOLE
#define reaches_back(k) true
#else
#define reaches_back(k) (db.turns[k] < turn + REMEMBERED)
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
      :: !same_epoch && !(db.exists[last] && predates(last)) -> goto unknown
      :: !same_epoch && db.exists[last] && predates(last) ->
        if
        :: remembered -> goto ok
        :: !remembered && reaches_back(last) -> goto rolled_back
        :: !remembered && !reaches_back(last) -> goto unknown
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
