  /* ---- steps of a process, with the hint ---- */
  :: d_step { well(me) && state[me] == ASLEEP && admitted_next(me) ->
      go_ahead(me); asks[me] = WITH_FORMER }
  :: atomic { well(me) && state[me] == LOOK && admitted_next(me) ->
      if
      :: asks[me] = WITH_FORMER
      :: asks[me] = WITHOUT      /* the look has been sent already */
      fi;
      d_step { go_ahead(me) } }
  :: d_step { well(me) && state[me] == TOLD && admitted_next(me) ->
      go_ahead(me); asks[me] = ANSWERED }

  :: atomic { well(me) && state[me] == AHEAD && asks[me] != ANSWERED ->
#ifdef LEASE_TIMES_DIFFER
      if
      :: asks[me] != WITHOUT && is_former(me) -> is_shorter = true
      :: skip
      fi;
#endif
      d_step {
        if
        :: asks[me] != WITHOUT && is_former(me) -> take_over(me); state[me] = HOLDING
        :: else -> acquire(me, subscribed[me] && asks[me] != AGAIN); timer[me] = UNARMED;
          entered[me] = false; before[me] = 0      /* it has been served */
        fi;
        if
        :: state[me] == HOLDING -> confirmed(me)
        :: state[me] != HOLDING && asks[me] == WITHOUT ->
          asks[me] = ANSWERED;
#ifdef OLD_ANSWER_COUNTS
          seen[me] = lease
#endif
        :: else ->
#if FAULTS == 0
          if :: work[me] == AT_WORK -> violated(ahead_in_vain) :: else fi;
#endif
          lose_the_lease(me)
        fi } }
  /* Whoever had the lease by that answer, it decides nothing: it may be older than the former holder's lease. */
  :: d_step { well(me) && state[me] == AHEAD && asks[me] == ANSWERED ->
#if defined(NOT_ASKED_AGAIN)
      answer_decides(me)
#elif defined(OLD_ANSWER_COUNTS)
      if :: seen[me] == former[me] -> asks[me] = AGAIN :: else -> answer_decides(me) fi;
      answer_comes(me)
#else
      asks[me] = AGAIN
#endif
    }
#ifdef UNSUBSCRIBED_AHEAD
  :: d_step { well(me) && state[me] == AHEAD && subscribed[me] -> subscribed[me] = false; heard[me] = 0 }
#endif

  :: d_step { well(me) && (state[me] == AHEAD || state[me] == HOLDING) && work[me] == AT_WORK && row == me ->
      commits(me) }
  /* Postgres has ended its transaction. */
  :: d_step { well(me) && (state[me] == AHEAD || state[me] == HOLDING) && work[me] == AT_WORK && row != me ->
      work[me] = AT_END }
  /* One connection: a look that was sent before is executed before the release. */
  :: d_step { well(me) && state[me] == AHEAD && work[me] == AT_END && asks[me] == ANSWERED ->
#ifdef ASKS_BEHIND_RELEASE
      late[me] = former[me];
#endif
      release(me); next_turn(me); renewed = false; yielded = false }
#ifdef ASKS_BEHIND_RELEASE
  :: d_step { well(me) && asks_late(me) -> look_late(me) }
#endif

  /* A transaction begins with the lease. What is in its way ends first, or is ended. */
#ifdef HANDLES
  :: d_step { me == PROCESSES - 1 && well(me) && state[me] == HOLDING && work[me] == NO_WORK && row == NOBODY ->
      work[me] = HANDLE; count_turn() }
#endif
  :: d_step { !is_of_handle(me) && well(me) && state[me] == HOLDING && work[me] == NO_WORK && row == NOBODY ->
      commits(me) }
  :: d_step { well(me) && state[me] == HOLDING && lease == me && work[me] == NO_WORK && row != NOBODY ->
      row = NOBODY }
#ifdef REFUSED
  /* Its COMMIT is refused behind the hint. The call may begin again under the same lease. */
  :: atomic { !is_of_handle(me) && well(me) && state[me] == HOLDING && work[me] == NO_WORK && row == NOBODY &&
      faults < FAULTS ->
      d_step {
        faults++;
#ifdef HINT_BY_NUMBER
        tell_next(me, turn + 1)
#else
        tell_next(me, NEVER)
#endif
      };
      if
#ifdef RETRIES
      :: skip
#endif
      :: work[me] = AT_END
      fi }
#endif
#ifdef GIVE_UP
  /* The work fails. */
  :: d_step { me == 0 && well(me) && (state[me] == AHEAD || state[me] == HOLDING) && row == me ->
      row = NOBODY; work[me] = AT_END }
#endif
