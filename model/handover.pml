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
 * A process may begin its work by the message of an offer: it has opened its transaction ahead, and Postgres has admitted it.
 * Whether it has is left open: Postgres is not in this model. It trusts the message, which may be old, until its first renewal
 * is answered. Until then another one may have the lease.
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

#include "handover/state.pml"
#include "handover/redis.pml"
#include "handover/process.pml"
#include "handover/world.pml"

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
