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
