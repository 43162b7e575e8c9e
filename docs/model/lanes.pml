/* How the connections to an origin are kept to their number while leases wait ahead in the queues of workers (docs/adr/0024).
 *
 * A lane is a slot of a session. It counts against the origin as long as the database has a lease in it, or has taken one back whose holder
 * has not said yet that it has let go. Syncs and answers are lost, late and doubled, and sessions end. What is checked: sockets of sessions that
 * are alive are never more than the origin may have. The database ends a session only after its worker has stopped trusting it.
 *
 *   -DFREE_AT_RECALL  a lane that is taken back counts no more at once
 *   -DLATE_GRANTS     a worker takes leases from an answer that it has given up
 *   -DSAYS_LEASES     a worker names the lanes of its leases, not those in which a transfer still runs
 *   -DOLD_SYNCS       the database believes a sync that is older than one it has heard
 *   -DNO_CAP_LOCK     lanes are counted before the lock that they are granted under
 *   -DEARLY_END       the database ends a session that its worker still trusts
 */
#define CAP 1
#define SESSIONS 2
#define LANES 1
#define SYNCS 2        /* with 3 it holds as well: 26.5 million states */
#define BIT(l) (1 << (l))

/* The database: lanes with leases, lanes that were taken back, the sync in which each was granted, the newest sync heard. */
byte leased[SESSIONS], recalled[SESSIONS], heard[SESSIONS];
bit known[SESSIONS];                                       /* whether the session is there */
byte counted;                                              /* lanes that a claim read before it had the lock */
/* The worker: lanes with leases, lanes with a socket, its newest sync, whether it waits for the answer, whether it trusts its session. */
byte held[SESSIONS], open[SESSIONS], sent[SESSIONS];
bit waits[SESSIONS], trusts[SESSIONS];

chan syncs[SESSIONS] = [2] of { byte, byte };              /* number, lanes that are held */
chan answers[SESSIONS] = [2] of { byte, byte, byte };      /* number, lanes granted, lanes lost */

#define ONES(m) (m)
#define USED (ONES(leased[0] | recalled[0]) + ONES(leased[1] | recalled[1]))
#define CHECK assert(ONES(open[0]) + ONES(open[1]) <= CAP)

inline answer(s, number, says) {
    granted = 0;
    lost = 0;
    if
#ifdef OLD_SYNCS
    :: true ->
#else
    :: number > heard[s] ->
#endif
        heard[s] = number;
        /* A grant that did not arrive is taken back, and what the worker does not name it has let go. */
        leased[s] = leased[s] & says;
        recalled[s] = recalled[s] & says;
        lost = recalled[s];
        if
        :: l = 0
        :: l = LANES
        fi;
        if
#ifdef NO_CAP_LOCK
        :: l < LANES && !((leased[s] | recalled[s]) & BIT(l)) && counted < CAP ->
#else
        :: l < LANES && !((leased[s] | recalled[s]) & BIT(l)) && USED < CAP ->
#endif
            leased[s] = leased[s] | BIT(l);
            granted = BIT(l)
        :: else
        fi
    :: else
    fi
}

inline serve(s) {
    if
    :: syncs[s] ? number, says
    :: syncs[s] ? <number, says>                           /* doubled: it comes again */
    fi;
    if
    :: known[s] ->
        answer(s, number, says);
        if
        :: nfull(answers[s]) -> answers[s] ! number, granted, lost
        :: true                                            /* lost */
        fi
    :: else
    fi;
    number = 0; says = 0; granted = 0; lost = 0; l = 0
}

inline recall(s) {
#ifndef FREE_AT_RECALL
    recalled[s] = recalled[s] | l;
#endif
    l = 0
}

inline end_of(s) {
#ifdef EARLY_END
    known[s]
#else
    known[s] && !trusts[s]
#endif
    -> known[s] = 0; leased[s] = 0; recalled[s] = 0
}

active proctype database() {
    byte number, says, granted, lost, l;
end:
    do
    :: atomic { nempty(syncs[0]) -> serve(0) }
    :: atomic { nempty(syncs[1]) -> serve(1) }
    :: atomic { len(syncs[0]) == 2 -> syncs[0] ? number, says; number = 0; says = 0 }     /* lost, or overtaken */
    :: atomic { len(syncs[1]) == 2 -> syncs[1] ? number, says; number = 0; says = 0 }
#ifdef NO_CAP_LOCK
    :: atomic { counted = USED }
#endif
    /* A verb or a sweep takes a lease back. */
    :: atomic { leased[0] -> l = leased[0]; leased[0] = 0; recall(0) }
    :: atomic { leased[1] -> l = leased[1]; leased[1] = 0; recall(1) }
    :: atomic { end_of(0) }
    :: atomic { end_of(1) }
    od
}

proctype worker(byte s) {
    byte number, granted, lost, l;
end:
    do
    :: atomic { trusts[s] && !waits[s] && sent[s] < SYNCS ->
        sent[s]++;
        waits[s] = 1;
        if
#ifdef SAYS_LEASES
        :: nfull(syncs[s]) -> syncs[s] ! sent[s], held[s]
#else
        :: nfull(syncs[s]) -> syncs[s] ! sent[s], held[s] | open[s]
#endif
        :: true
        fi
    }
    :: atomic { waits[s] -> waits[s] = 0 }                 /* it gives the answer up */
    :: atomic { trusts[s] && nempty(answers[s]) ->
        if
        :: answers[s] ? number, granted, lost
        :: answers[s] ? <number, granted, lost>
        fi;
        if
#ifdef LATE_GRANTS
        :: true ->
#else
        :: waits[s] && number == sent[s] ->
#endif
            waits[s] = 0;
            held[s] = (held[s] & ~lost) | granted
        :: else
        fi;
        number = 0; granted = 0; lost = 0
    }
    :: atomic { trusts[s] && (held[s] & ~open[s] & BIT(0)) -> open[s] = open[s] | BIT(0); CHECK }
    /* A transfer ends; its lease does later, or the next one of the lane begins. */
    :: atomic { open[s] & BIT(0) -> open[s] = open[s] & ~BIT(0) }
    :: atomic { held[s] & BIT(0) -> held[s] = held[s] & ~BIT(0) }
    :: atomic { trusts[s] -> trusts[s] = 0; open[s] = 0; held[s] = 0; break }
    od
}

init {
    atomic {
        byte s;
        for (s : 0 .. SESSIONS - 1) { known[s] = 1; trusts[s] = 1; run worker(s) }
    }
}
