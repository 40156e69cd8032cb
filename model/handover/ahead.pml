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

#define is_in_transaction(p) ((state[p] == AHEAD || state[p] == HOLDING) && (work[p] == AT_WORK || work[p] == COMMITTING))
  :: d_step { well(me) && is_in_transaction(me) && work[me] == AT_WORK && row == me -> send_hint(me) }
#ifdef YIELD
  /* No hint is sent. Without YIELD, that is as a hint that is not heard. */
  :: d_step { well(me) && is_in_transaction(me) && work[me] == AT_WORK && row == me -> commits(me) }
#endif
  :: d_step { well(me) && is_in_transaction(me) && work[me] == COMMITTING && row == me -> commits(me) }
  /* Postgres has ended its transaction. */
  :: d_step { well(me) && is_in_transaction(me) && row != me -> work[me] = AT_END }
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
#define begins(p) (!is_of_handle(p) && well(p) && state[p] == HOLDING && \
  ((work[p] == NO_WORK && row == NOBODY) || (work[p] == IN_VAIN && row == p)))
  :: d_step { begins(me) -> row = me; send_hint(me) }
#ifdef YIELD
  :: d_step { begins(me) -> row = me; commits(me) }
#endif
  :: d_step { well(me) && state[me] == HOLDING && lease == me && work[me] == NO_WORK && row != NOBODY ->
      rolled_back() }
  /* A transaction was begun by a hint, and may not go ahead. */
  :: d_step { well(me) && (state[me] == ASLEEP || state[me] == LOOK || state[me] == TOLD) && admitted(me) ->
      row = me; work[me] = IN_VAIN; hinted[me] = 0; former[me] = NOBODY }
  :: d_step { well(me) && work[me] == IN_VAIN ->
      if :: row == me -> rolled_back() :: else fi;
      work[me] = NO_WORK }
#ifdef REFUSED
  /* Its COMMIT is refused behind the hint. The call may begin again under the same lease, once that is confirmed. */
  :: atomic { well(me) && is_in_transaction(me) && work[me] == COMMITTING && row == me && faults < FAULTS ->
      d_step { faults++; rolled_back() };
      if
#ifdef RETRIES
      :: work[me] = NO_WORK
#endif
      :: work[me] = AT_END
      fi }
#endif
#ifdef RETRIES_AHEAD
  /* It asks Postgres for nothing but the row this time. */
  :: d_step { well(me) && state[me] == AHEAD && work[me] == NO_WORK && row == NOBODY ->
      row = me; work[me] = AT_WORK; not_beside_a_handle(me) }
#endif
#ifdef GIVE_UP
  /* The work fails, or may not commit. */
  :: d_step { me == 0 && well(me) && is_in_transaction(me) && row == me ->
      rolled_back(); work[me] = AT_END }
#endif
