/* ---- parts of the scripts ---- */
inline publish_look() {
  for (i : 0 .. PROCESSES - 1) {
    if :: hears(i) -> heard[i] = heard[i] | LOOK_AGAIN :: else fi
  }
  i = 0
}

inline publish_turn() {
  for (i : 0 .. PROCESSES - 1) {
    if
    :: hears(i) && i == lease -> heard[i] = heard[i] | YOUR_TURN
#ifndef WAKE_NAMED_ONLY
    :: hears(i) && i != lease -> heard[i] = heard[i] | OTHERS_TURN
#endif
    :: else
    fi
  }
  i = 0
}

inline remove_front() {
  entry = queue[0];
  for (i : 1 .. PROCESSES) { queue[i - 1] = queue[i] }
  queue[PROCESSES] = 0;
  waiting--;
  i = 0
}

inline remove_entry_of(p) {
  found = false;
  for (i : 0 .. PROCESSES) {
    if
    :: i < waiting && queue[i] == p -> found = true
    :: else
    fi;
    if
    :: found && i < PROCESSES -> queue[i] = queue[i + 1]
    :: found && i == PROCESSES -> queue[i] = 0
    :: else
    fi
  }
  if :: found -> waiting-- :: else fi;
  i = 0; found = false
}

inline offer_to(e) {
  lease = e; offered = true;
  lease_changed();
  publish_turn()
}

/* Offers the lease to the first entry with a receiver; `found` says whether there was one. */
inline pass_on() {
  found = false;
  do
  :: !found && waiting > 0 ->
    remove_front();
    if :: has_receiver(entry) -> offer_to(entry); found = true :: else fi
  :: else -> break
  od;
  entry = 0
}

inline free_the_key() {
  lease = NOBODY; offered = false;
  lease_changed();
  publish_look()
}

inline take(p) {
  if
  :: lease == p -> lease_renewed()
  :: else -> lease_changed()
  fi;
  lease = p; offered = false;
  served_in_order(p);
  for (i : 0 .. PROCESSES - 1) {
    /* Two may believe that they hold the key only where time or FLUSHALL has ended the lease of one. */
    if :: i != p && state[i] == HOLDING && !excused[i] -> violated(two_holders) :: else fi
  }
  i = 0;
  excused[p] = false
}

/* First come first served is promised to those who wait, where nothing fails. */
inline served_in_order(p) {
  for (i : 0 .. PROCESSES - 1) {
#if FAULTS == 0
    if :: i != p && entered[i] && (!entered[p] || (before[p] & (1 << i))) -> violated(out_of_turn) :: else fi;
#endif
    before[i] = before[i] & (255 - (1 << p))
  }
  i = 0;
  entered[p] = false; before[p] = 0
}

inline leave(p) {
  for (i : 0 .. PROCESSES - 1) { before[i] = before[i] & (255 - (1 << p)) }
  i = 0;
  entered[p] = false; before[p] = 0;
  subscribed[p] = false; heard[p] = 0; timer[p] = UNARMED; trusts[p] = false
}

inline enter(p) {
  found = false;
  for (i : 0 .. PROCESSES) {
    if :: i < waiting && queue[i] == p -> found = true :: else fi
  }
  if
  :: !found ->
    queue[waiting] = p; waiting++;
#ifdef LAST_COME_FIRST
    queue[waiting - 1] = queue[0]; queue[0] = p;
#endif
    for (i : 0 .. PROCESSES - 1) {
      if :: entered[i] && i != p -> before[p] = before[p] | (1 << i) :: else fi
    }
    entered[p] = true
  :: else
  fi;
  i = 0; found = false
}

/* ---- the scripts ---- */
inline acquire(p, may_enter) {
  if
  :: lease == p -> take(p); state[p] = HOLDING
  :: lease == NOBODY ->
    found = false;
    do
    :: !found && waiting > 0 ->
      remove_front();
      if
      :: entry == p -> take(p); state[p] = HOLDING; found = true
      :: entry != p && has_receiver(entry) -> offer_to(entry); found = true
      :: else
      fi
    :: else -> break
    od;
    entry = 0;
    if :: !found -> take(p); state[p] = HOLDING :: else fi;
    found = false
  :: else
  fi;
  if
  :: state[p] != HOLDING ->
    if :: may_enter -> enter(p) :: else fi;
    timer[p] = (offered -> OFFER_NOW : LEASE_NOW)
  :: else -> timer[p] = UNARMED
  fi
}

inline release(p) {
  remove_entry_of(p);
  somebody_noticed();
  if
#if defined(HOLDER_NOT_COMPARED)
  :: true ->
#elif defined(SILENT_RELEASE)
  :: lease == p ->
#else
  :: lease == p || lease == NOBODY ->
#endif
    pass_on();
    if :: !found -> free_the_key() :: else fi;
    found = false
#ifndef HOLDER_NOT_COMPARED
  :: else
#endif
  fi
}

inline extend(p) {
  if
  :: lease == p -> lease_renewed()
  :: lease == NOBODY ->
#ifndef SILENT_RENEWAL
    pass_on();
    if :: !found -> free_the_key() :: else fi;
    found = false;
#endif
    somebody_noticed()
#ifdef LEASE_TIMES_DIFFER
  /* The sleepers' timers may be armed by a longer lease than the one that stands now. */
  :: lease != p && lease != NOBODY -> lose_the_excuse()
#endif
  :: else
  fi
}

inline yield(p) {
  if
  :: lease == p ->
    pass_on();
    if :: !found -> lease_renewed() :: else fi;
    found = false
  :: else -> extend(p)
  fi
}

/* Up to here nobody could know of the FLUSHALL, and a sleeper has to wait as if its holder had crashed. */
inline somebody_noticed() {
  if :: lease == NOBODY -> lose_the_excuse() :: else fi
}

inline lose_the_excuse() {
  for (i : 0 .. PROCESSES - 1) {
    if :: timer[i] == LEASE_FLUSHED -> timer[i] = LEASE_PAST :: else fi
  }
  i = 0
}
