/*
 * Permits: at most so many at work under a key. Redis gives leases of numbered permits, first come, first served; Postgres has
 * a row for each permit.
 *
 * Each process wants one permit once, as one of at most `most` at work. A script is one step, and messages arrive: what happens
 * without them is that of a lock (handover.pml). What Postgres keeps does not depend on Redis; the order and the count over
 * calls with different numbers do.
 *
 *   PROCESSES             how many; MOST0 … MOST3: as one of how many each works
 *   FAULTS                how many faults a run may have
 *   EXPIRE FLUSH          which: the lease of one that goes on, as if it were frozen; all leases and places
 *   GIVE_UP               process 0 may give up
 *   OVERALL               asks what Postgres does not keep: whether a call always begins beside fewer than it allows
 *
 * Broken on purpose: NO_ROW COUNT_IGNORED HEAD_IS_PASSED LAST_COME_FIRST GIVE_UP_SAYS_NOTHING ONE_OFFER
 */
#ifndef PROCESSES
#define PROCESSES 3
#endif
#ifndef FAULTS
#define FAULTS 0
#endif
#ifndef MOST0
#define MOST0 2
#endif
#ifndef MOST1
#define MOST1 2
#endif
#ifndef MOST2
#define MOST2 2
#endif
#ifndef MOST3
#define MOST3 2
#endif
#define PERMITS 3
#define NOBODY 255

#define IDLE 0
#define ASLEEP 1                  /* has a place in the queue, or had it before a flush */
#define LOOK 2
#define LEASED 3                  /* has a lease, and asks Postgres */
#define WORKING 4                 /* Postgres has admitted it */
#define DONE 5
byte state[PROCESSES];
byte most[4];
byte mine[PROCESSES];             /* the permit that it was given */
byte lease[PERMITS];              /* Redis: who has it */
byte row[PERMITS];                /* Postgres: whose transaction has it */
byte queue[PROCESSES + 1];
byte waiting;
byte before[PROCESSES];           /* who had a place when this one got its own, as a set */
bool entered[PROCESSES];
byte faults, i, j, at, number, count, entry;
bool blocked, told;

bool too_many, beside_too_many, out_of_turn, asleep_beside_a_free_permit, unserved;
#define violated(what) what = true; assert(!what)

#define works(p, m) ((state[p] == WORKING && most[p] <= m) -> 1 : 0)
#if PROCESSES == 3
#define at_work(m) (works(0, m) + works(1, m) + works(2, m))
#define every_done (state[0] == DONE && state[1] == DONE && state[2] == DONE)
#else
#define at_work(m) (works(0, m) + works(1, m) + works(2, m) + works(3, m))
#define every_done (state[0] == DONE && state[1] == DONE && state[2] == DONE && state[3] == DONE)
#endif

/* How many leases there are, and the first free permit below `limit`. */
inline look_for(limit) {
  count = 0; number = NOBODY;
  for (j : 0 .. PERMITS - 1) {
    if
    :: lease[j] != NOBODY -> count++
    :: lease[j] == NOBODY && number == NOBODY && j < limit -> number = j
    :: else
    fi
  }
  j = 0;
#ifndef COUNT_IGNORED
  if :: count >= limit -> number = NOBODY :: else fi
#endif
}

inline remove_at(place) {
  for (j : place .. PROCESSES - 1) { queue[j] = queue[j + 1] }
  j = 0;
  waiting--
}

inline remove_of(p) {
  for (i : 0 .. PROCESSES - 1) {
    if :: i < waiting && queue[i] == p -> remove_at(i) :: else fi
  }
  i = 0
}

inline give(p) {
  lease[number] = p; mine[p] = number;
  /* It works beside fewer than it allows. Redis alone sees to that: after a flush it does not know all. */
  count = 0;
  for (j : 0 .. PERMITS - 1) { if :: lease[j] != NOBODY -> count++ :: else fi }
  j = 0;
  if :: count > most[p] -> violated(beside_too_many) :: else fi;
  /* Nobody who had a place before this one may still wait. */
  for (j : 0 .. PROCESSES - 1) {
    if
    :: j != p && entered[j] && (!entered[p] || (before[p] & (1 << j))) && faults == 0 -> violated(out_of_turn)
    :: else
    fi
  }
  j = 0;
  entered[p] = false
}

/* Offers what is free to the first of the queue. One that has to wait keeps all behind it waiting. */
inline serve(own) {
  blocked = false; told = false; at = 0;
  do
  :: waiting > at && !blocked && queue[at] != own ->
    entry = queue[at];
    look_for(most[entry]);
    if
    :: number != NOBODY ->
      remove_at(at); give(entry); state[entry] = LEASED; told = true;
#ifdef ONE_OFFER
      blocked = true
#endif
    :: else ->
#ifdef HEAD_IS_PASSED
      at++
#else
      blocked = true
#endif
    fi
  :: else -> break
  od;
  entry = 0; at = 0
}

inline wake_all() {
  for (j : 0 .. PROCESSES - 1) { if :: state[j] == ASLEEP -> state[j] = LOOK :: else fi }
  j = 0
}

inline serve_or_tell() {
  serve(NOBODY);
  if :: waiting == 0 && !told -> wake_all() :: else fi;
  blocked = false; told = false; number = 0; count = 0
}

proctype process(byte me) {
  do
  :: atomic { state[me] == IDLE || state[me] == LOOK ->
      d_step {
        serve(me);
        if
        :: state[me] == LEASED -> skip
        :: else ->
          look_for(most[me]);
          if
#ifdef HEAD_IS_PASSED
          :: number != NOBODY ->
#else
          :: number != NOBODY && (waiting == 0 || queue[0] == me) ->
#endif
            remove_of(me); give(me); state[me] = LEASED
          :: else ->
            state[me] = ASLEEP;
            if
            :: entered[me] -> skip
            :: else ->
              entered[me] = true; before[me] = 0;
              for (j : 0 .. PROCESSES - 1) { if :: entered[j] && j != me -> before[me] = before[me] | (1 << j) :: else fi }
              j = 0
            fi;
            at = NOBODY;
            for (j : 0 .. PROCESSES - 1) { if :: j < waiting && queue[j] == me -> at = j :: else fi }
            j = 0;
            if
            :: at == NOBODY ->
#ifdef LAST_COME_FIRST
              for (j : 0 .. PROCESSES - 1) { queue[PROCESSES - j] = queue[PROCESSES - j - 1] }
              j = 0;
              queue[0] = me;
#else
              queue[waiting] = me;
#endif
              waiting++
            :: else
            fi;
            at = 0
          fi
        fi;
        blocked = false; told = false; number = 0; count = 0
      } }

  /* The admission: it waits for the row, or, where the lease has ended meanwhile, is given up. */
#ifdef NO_ROW
  :: d_step { state[me] == LEASED -> state[me] = WORKING }
#else
  :: d_step { state[me] == LEASED && row[mine[me]] == NOBODY ->
      row[mine[me]] = me; state[me] = WORKING;
#ifdef OVERALL
      if :: at_work(PERMITS) > most[me] -> violated(beside_too_many) :: else fi
#endif
    }
#endif
  /* It ends the transaction that is in its way: that one's lease has ended. */
  :: d_step { state[me] == LEASED && row[mine[me]] != NOBODY && row[mine[me]] != me && lease[mine[me]] == me ->
      state[row[mine[me]]] = DONE; row[mine[me]] = NOBODY }
  :: d_step { state[me] == LEASED && lease[mine[me]] != me -> state[me] = DONE }

  :: d_step { state[me] == WORKING ->
      if :: row[mine[me]] == me -> row[mine[me]] = NOBODY :: else fi;
      state[me] = DONE;
      if
      :: lease[mine[me]] == me ->
        lease[mine[me]] = NOBODY;
        serve_or_tell()
      :: lease[mine[me]] == NOBODY -> serve_or_tell()
      :: else
      fi }

#ifdef GIVE_UP
  :: d_step { me == 0 && state[me] == ASLEEP ->
      remove_of(me); entered[me] = false; state[me] = DONE;
#ifndef GIVE_UP_SAYS_NOTHING
      serve_or_tell()
#endif
    }
#endif
  :: state[me] == DONE -> break
  od
}

#if defined(EXPIRE) || defined(FLUSH)
proctype world() {
end:
  do
#ifdef EXPIRE
  :: d_step { faults < FAULTS && lease[0] != NOBODY -> faults++; lease[0] = NOBODY; wake_all() }
  :: d_step { faults < FAULTS && lease[1] != NOBODY -> faults++; lease[1] = NOBODY; wake_all() }
#endif
#ifdef FLUSH
  :: d_step { faults < FAULTS ->
      faults++; waiting = 0;
      for (j : 0 .. PERMITS - 1) { lease[j] = NOBODY }
      for (j : 0 .. PROCESSES) { queue[j] = 0 }
      j = 0; wake_all() }
#endif
  od
}

#endif

/* ---- what must hold ---- */
#define leases ((lease[0] != NOBODY -> 1 : 0) + (lease[1] != NOBODY -> 1 : 0) + (lease[2] != NOBODY -> 1 : 0))
#if PROCESSES == 3
#define looks (state[0] <= LOOK && state[0] != ASLEEP || state[1] <= LOOK && state[1] != ASLEEP || state[2] <= LOOK && state[2] != ASLEEP)
#else
#define looks (state[0] <= LOOK && state[0] != ASLEEP || state[1] <= LOOK && state[1] != ASLEEP || \
  state[2] <= LOOK && state[2] != ASLEEP || state[3] <= LOOK && state[3] != ASLEEP)
#endif

active proctype monitor() {
end:
  do
  /* Whatever Redis does: of the calls that work as one of at most so many, no more are at work. */
  :: atomic { at_work(1) > 1 || at_work(2) > 2 || at_work(3) > 3 -> violated(too_many) }
  /* Who is first in the queue may work, and nobody is about to look. */
  :: atomic { waiting > 0 && leases < most[queue[0]] && !looks -> violated(asleep_beside_a_free_permit) }
  :: atomic { timeout && !every_done -> violated(unserved) }
  od
}

init {
  atomic {
    most[0] = MOST0; most[1] = MOST1; most[2] = MOST2; most[3] = MOST3;
    for (i : 0 .. PERMITS - 1) { lease[i] = NOBODY; row[i] = NOBODY }
    i = 0;
    run process(0); run process(1); run process(2);
#if PROCESSES > 3
    run process(3);
#endif
#if defined(EXPIRE) || defined(FLUSH)
    run world()
#endif
  }
}
