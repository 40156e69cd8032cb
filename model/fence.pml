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
 * TOKEN_WITHOUT_HOLDER STATUS_ALONE HOLDER_IN_HISTORY BORN_IGNORED HISTORY_TAKEN_AS_WHOLE KEYS_UNSORTED
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

#include "fence/state.pml"
#include "fence/transaction.pml"
#include "fence/worker.pml"
#include "fence/server.pml"

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
