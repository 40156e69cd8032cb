/*
 * The waiting room in Redis: who gets the lease next, and how the others learn it.
 *
 * One key, one contender per process. A script is one step, as Redis runs it. What Redis decides is never wrong about
 * safety (Postgres decides that, see fence.pml); the question here is whether a waiter is forgotten.
 *
 * Time is not counted. A timer knows only what it was armed by, and with that what it may not do: fire before the
 * lease ends that it was armed by. As each look needs a change before it, every run ends, and "sooner or later
 * every live waiter has its turn" becomes "no run ends with a live waiter unserved", which needs no fairness.
 *
 *   PROCESSES, TURNS      how many, and how often each wants the key
 *   FAULTS                how many faults a run may have
 *   KILL FREEZE DROP FLUSH EXPIRE LOST   which (expiry: of a live process's lease; lost: a reply, or a last command)
 *   GIVE_UP YIELD         process 0 may give up (if all could, nobody would ever be left unserved); holders may yield
 *
 *   LEASE_TIMES_DIFFER    callers may ask for leases of any time; without it, for the same
 *
 * Broken on purpose: WAKE_NAMED_ONLY SUBSCRIBE_AFTER_LOOK GIVE_UP_KEEPS_OFFER SILENT_RENEWAL SILENT_RELEASE
 * DEAF_WHILE_LOOKING RECONNECT_WITHOUT_LOOK LAST_COME_FIRST HOLDER_NOT_COMPARED
 */
#ifndef PROCESSES
#define PROCESSES 3
#endif
#ifndef TURNS
#define TURNS 1
#endif
#ifndef FAULTS
#define FAULTS 0
#endif

/* ---- Redis ---- */
#define NOBODY 255
/* A holder id that no process answers to any more, although its process is there. */
#define LEFT 254

byte lease = NOBODY;
bool offered;                     /* the lease is an offer: it ends after about a second if nobody confirms it */
byte queue[PROCESSES + 1];
byte waiting;                     /* entries in the queue */

/* ---- processes ---- */
#define IDLE 0                    /* does not want the key */
#define FIRST_LOOK 1
#define SUBSCRIBING 2
#define LOOK 3
#define TOLD 4                    /* the script has answered, and the answer is on its way */
#define ASLEEP 5
#define HOLDING 6
#define WINDING_UP 7              /* the lease is lost, and the work is being ended */
#define DONE 8
byte state[PROCESSES];

/* What a sleeper's timer was armed by. */
#define UNARMED 0
#define OFFER_NOW 1               /* by the offer that stands: fires when that ends */
#define SOON 2                    /* by an offer: fires within about a second */
#define LEASE_NOW 3               /* by the lease that stands: fires when that ends */
#define LEASE_RENEWED 4           /* by the lease that stands, before a renewal: may fire, and does when that ends */
#define LEASE_PAST 5              /* by a lease that is no more: fires in up to a whole lease time */
#define LEASE_FLUSHED 6           /* by a lease that FLUSHALL took from a holder who has not noticed yet */
byte timer[PROCESSES];

#define YOUR_TURN 1
#define OTHERS_TURN 2
#define LOOK_AGAIN 4
byte heard[PROCESSES];            /* messages on their way, in any order: they may be late */
bool subscribed[PROCESSES];

#define UP 0
#define HALF_OPEN 1               /* the process hears nothing, and Redis still counts it */
#define DOWN 2
byte connection[PROCESSES];       /* of the subscriber */

#define RUNNING 0
#define FROZEN 1                  /* will thaw */
#define STUCK 2                   /* will not */
#define KILLED 3
byte health[PROCESSES];

byte faults;                      /* so far */
bool excused[PROCESSES];          /* this holder's lease has expired, or was flushed */
bool entered[PROCESSES];          /* has an entry or the offer that came of it, and has not been served */
byte before[PROCESSES];           /* who had entered when this one did, as a set: they go first */

#define named(p) (p < PROCESSES)
#define well(p) (health[p] == RUNNING)
#define hears(p) (subscribed[p] && health[p] != KILLED && connection[p] == UP)
/* PUBLISH counts a frozen process, and one whose connection has broken unnoticed. */
#define has_receiver(e) (e == LEFT || (subscribed[e] && health[e] != KILLED && connection[e] != DOWN))

byte i, entry;                    /* of the scripts, which run one at a time; zero between them */
bool found;

bool two_holders, out_of_turn, asleep_beside_a_free_key, unserved;
#define violated(what) what = true; assert(!what)

/* ---- time ---- */
inline lease_changed() {
  for (i : 0 .. PROCESSES - 1) {
    if
    :: timer[i] == OFFER_NOW -> timer[i] = SOON
    :: timer[i] == LEASE_NOW || timer[i] == LEASE_RENEWED -> timer[i] = LEASE_PAST
    :: else
    fi
  }
  i = 0
}

inline lease_renewed() {
  for (i : 0 .. PROCESSES - 1) {
    if
    :: timer[i] == OFFER_NOW -> timer[i] = SOON
    :: timer[i] == LEASE_NOW -> timer[i] = LEASE_RENEWED
    :: else
    fi
  }
  i = 0
}

inline lease_ended() {
  for (i : 0 .. PROCESSES - 1) {
    if
    :: timer[i] == OFFER_NOW || timer[i] == LEASE_NOW || timer[i] == LEASE_RENEWED -> timer[i] = SOON
    :: else
    fi
  }
  i = 0
}

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
  subscribed[p] = false; heard[p] = 0; timer[p] = UNARMED
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

/* ---- a process ---- */
#define may_fire(p) (timer[p] == SOON || timer[p] == LEASE_RENEWED || timer[p] == LEASE_PAST || timer[p] == LEASE_FLUSHED)

inline next_turn(p) {
  leave(p);
  excused[p] = false;
  turns++;
  state[p] = (turns < TURNS -> IDLE : DONE)
}

proctype process(byte me) {
  byte turns;
  bool renewed, yielded;
  do
  :: d_step { well(me) && state[me] == IDLE -> state[me] = FIRST_LOOK }

  :: d_step { well(me) && state[me] == FIRST_LOOK ->
      acquire(me, false);
      if
      :: state[me] != HOLDING ->
        timer[me] = UNARMED;
#ifdef SUBSCRIBE_AFTER_LOOK
        state[me] = LOOK
#else
        state[me] = SUBSCRIBING
#endif
      :: else
      fi }

  :: d_step { well(me) && state[me] == SUBSCRIBING && connection[me] == UP ->
      subscribed[me] = true;
#ifdef SUBSCRIBE_AFTER_LOOK
      state[me] = ASLEEP
#else
      state[me] = LOOK
#endif
    }

  :: atomic { well(me) && state[me] == LOOK ->
      if
      :: heard[me] = 0             /* arrived before the look, which sees what they were about */
      :: heard[me] != 0 -> skip    /* late */
      fi;
      d_step {
        acquire(me, true);
        if :: state[me] != HOLDING -> state[me] = TOLD :: else fi } }

  :: d_step { well(me) && state[me] == TOLD ->
#ifdef DEAF_WHILE_LOOKING
      heard[me] = 0;
#endif
#ifdef SUBSCRIBE_AFTER_LOOK
      state[me] = (subscribed[me] -> ASLEEP : SUBSCRIBING)
#else
      state[me] = ASLEEP
#endif
    }

  :: d_step { well(me) && state[me] == ASLEEP && (heard[me] & (YOUR_TURN | LOOK_AGAIN)) ->
      heard[me] = 0; timer[me] = UNARMED; state[me] = LOOK }
  :: d_step { well(me) && state[me] == ASLEEP && (heard[me] & OTHERS_TURN) ->
      heard[me] = heard[me] & (YOUR_TURN | LOOK_AGAIN); timer[me] = SOON }
  :: d_step { well(me) && state[me] == ASLEEP && may_fire(me) ->
      timer[me] = UNARMED; state[me] = LOOK }

  :: d_step { well(me) && connection[me] != UP ->
      connection[me] = UP; heard[me] = 0;
#ifndef RECONNECT_WITHOUT_LOOK
      if :: state[me] == ASLEEP || state[me] == TOLD -> timer[me] = UNARMED; state[me] = LOOK :: else fi
#endif
    }

#ifdef GIVE_UP
  :: d_step { me == 0 && well(me) && (state[me] == ASLEEP || state[me] == LOOK || state[me] == SUBSCRIBING) ->
#ifdef GIVE_UP_KEEPS_OFFER
      remove_entry_of(me);
#else
      release(me);
#endif
      next_turn(me) }
#endif

  /* One renewal that finds the lease is as good as many; one that does not may come at any time. */
  :: d_step { well(me) && state[me] == HOLDING && (!renewed || lease != me) ->
      if :: lease == me -> renewed = true :: else -> state[me] = WINDING_UP fi;
      extend(me) }
#ifdef YIELD
  :: d_step { well(me) && state[me] == HOLDING && !yielded ->
      yielded = true;
      yield(me);
      /* Its other callers still want the key: it contends anew. */
      if
      :: lease == me
      :: lease != me && !excused[me] -> leave(me); renewed = false; state[me] = FIRST_LOOK
      :: else -> state[me] = WINDING_UP
      fi }
#endif
  :: d_step { well(me) && (state[me] == HOLDING || state[me] == WINDING_UP) ->
      release(me); next_turn(me); renewed = false; yielded = false }

  :: state[me] == DONE || health[me] >= STUCK -> break

#ifdef FREEZE
  :: d_step { well(me) && faults < FAULTS -> faults++; health[me] = FROZEN }
  :: d_step { health[me] == FROZEN -> health[me] = RUNNING }
  :: d_step { well(me) && faults < FAULTS -> faults++; health[me] = STUCK }
#endif
#ifdef KILL
  :: d_step { well(me) && faults < FAULTS -> faults++; health[me] = KILLED; subscribed[me] = false; heard[me] = 0 }
#endif
#ifdef DROP
  :: d_step { well(me) && faults < FAULTS && subscribed[me] && connection[me] == UP ->
      faults++; connection[me] = HALF_OPEN; heard[me] = 0 }
  :: d_step { well(me) && faults < FAULTS && subscribed[me] && connection[me] == UP ->
      faults++; connection[me] = DOWN; heard[me] = 0 }
#endif
#ifdef LOST
  /* The reply of a look is lost: the client sends it again. */
  :: d_step { well(me) && state[me] == HOLDING && faults < FAULTS && !renewed && !yielded ->
      faults++; timer[me] = UNARMED;
      state[me] = (subscribed[me] -> LOOK : FIRST_LOOK) }
  /* The last command is lost: what it should have removed stays, for a holder who is not there any more. */
  :: d_step { well(me) && faults < FAULTS && (state[me] == HOLDING || (state[me] == ASLEEP && turns + 1 < TURNS)) ->
      faults++;
      if :: lease == me -> lease = LEFT :: else fi;
      for (i : 0 .. PROCESSES) {
        if :: i < waiting && queue[i] == me -> queue[i] = LEFT :: else fi
      }
      i = 0;
      next_turn(me); renewed = false; yielded = false }
#endif
  od
}

/* ---- what goes wrong, and time ---- */
/* Whoever is well and not asleep, or about to wake, acts before an offer ends; where not, that counts as a fault. */
#define lease_is_kept (named(lease) && well(lease) && \
  (state[lease] != ASLEEP || connection[lease] == UP || timer[lease] == SOON))

proctype world() {
end:
  do
  /* Nobody keeps it. */
  :: d_step { lease != NOBODY && !lease_is_kept ->
      if :: named(lease) -> excused[lease] = true :: else fi;
      lease = NOBODY; offered = false; lease_ended() }
#ifdef EXPIRE
  :: d_step { faults < FAULTS && lease_is_kept ->
      faults++; excused[lease] = true;
      lease = NOBODY; offered = false; lease_ended() }
#endif
#ifdef FLUSH
  :: atomic { faults < FAULTS && (lease != NOBODY || waiting > 0) ->
      faults++;
      if
      :: skip
      :: for (i : 0 .. PROCESSES - 1) {     /* restarted empty */
          if :: subscribed[i] && health[i] != KILLED -> connection[i] = DOWN; heard[i] = 0 :: else fi
        }
        i = 0
      fi;
      if :: named(lease) -> excused[lease] = true :: else fi;
      lease = NOBODY; offered = false;
      for (i : 0 .. PROCESSES) { queue[i] = 0 }
      waiting = 0;
      for (i : 0 .. PROCESSES - 1) {
        if
        :: timer[i] == OFFER_NOW -> timer[i] = SOON
        :: timer[i] == LEASE_NOW || timer[i] == LEASE_RENEWED -> timer[i] = LEASE_FLUSHED
        :: else
        fi
      }
      i = 0 }
#endif
  od
}

/* ---- what must hold ---- */
/* About to do something, within no more than an offer's time. */
#define stirs(p) (well(p) && state[p] != IDLE && state[p] != WINDING_UP && state[p] != DONE && \
  (state[p] != ASLEEP || (heard[p] != 0 && connection[p] == UP) || timer[p] == SOON))
#define forgotten(p) (well(p) && state[p] == ASLEEP && connection[p] == UP && heard[p] == 0 && timer[p] == LEASE_PAST)
#define over(p) (state[p] == DONE || health[p] >= STUCK)

#if PROCESSES == 2
#define any(f) (f(0) || f(1))
#define every(f) (f(0) && f(1))
#elif PROCESSES == 3
#define any(f) (f(0) || f(1) || f(2))
#define every(f) (f(0) && f(1) && f(2))
#else
#define any(f) (f(0) || f(1) || f(2) || f(3))
#define every(f) (f(0) && f(1) && f(2) && f(3))
#endif
active proctype monitor() {
end:
  do
  :: atomic { lease == NOBODY && any(forgotten) && !any(stirs) ->
      violated(asleep_beside_a_free_key) }
  :: atomic { timeout && !every(over) -> violated(unserved) }
  od
}

init {
  atomic {
    run process(0); run process(1);
#if PROCESSES > 2
    run process(2);
#endif
#if PROCESSES > 3
    run process(3);
#endif
    run world()
  }
}
