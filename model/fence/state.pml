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
