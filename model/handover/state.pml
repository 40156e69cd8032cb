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
#define SOON 2                    /* by an offer, or a message of another's turn: fires within a second or two */
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
bool trusts[PROCESSES];           /* works by the message of an offer, and has not renewed the lease yet */
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
