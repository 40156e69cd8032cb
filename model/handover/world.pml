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
