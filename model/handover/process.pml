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
  /* Its transaction is admitted, so it need not look. */
  :: d_step { well(me) && state[me] == ASLEEP && (heard[me] & YOUR_TURN) ->
      heard[me] = 0; timer[me] = UNARMED; state[me] = HOLDING; trusts[me] = true }
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
      if
      :: lease == me && trusts[me] -> trusts[me] = false; renewed = true; take(me)
      :: lease == me && !trusts[me] -> renewed = true; extend(me)
      :: else -> trusts[me] = false; state[me] = WINDING_UP; extend(me)
      fi }
  /* Nobody of its callers waits, so it listens no more. */
  :: d_step { well(me) && state[me] == HOLDING && subscribed[me] -> subscribed[me] = false; heard[me] = 0 }
#ifdef YIELD
  /* A place in the queue would outlive the yield of one who trusts an old offer. */
  :: d_step { well(me) && state[me] == HOLDING && !yielded && !trusts[me] ->
      yielded = true;
      yield(me);
      /* Its other callers still want the key: it contends anew. */
      if
      :: lease == me -> skip
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
  :: d_step { well(me) && state[me] == HOLDING && faults < FAULTS && !trusts[me] && !renewed && !yielded ->
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
