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
