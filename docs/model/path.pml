/* How a path is fenced (docs/adr/0017): task A has a path, ends in some way, and is tried again, or task B has the same path then.
 *
 * A worker can be stopped between any two steps and go on at any later time, since nothing makes a process of the model take its next
 * step. No process looks at a clock. A session that the database has given up (`GIVE_UP`) goes on all the same.
 *
 * deploy/model.sh checks that the design holds, also where files carry no marks (-DNO_MARKS) and where a file that stands at the path is not replaced
 * (-DKEEPS: a task does not wait for its own writers then; the database waits for those that may bring the whole file, see I8), and that each of these breaks it:
 *   -DNO_REVOKE      nothing is revoked
 *   -DNO_RMDIR       revoking empties the directory of a session and leaves it there
 *   -DFROM_PARTS     files are put in place from the shared directory of parts
 *   -DBY_NAME        a purge deletes what has the name, whoever owns the path by now
 *   -DEARLY          the new owner puts its file in place before it revokes
 *   -DLATE_BEGIN     a session makes its directory when it needs it first
 *   -DNO_WAIT        the new owner does not wait for sessions that live and may still be at work, and for purges
 *   -DEMPTY_DELETES  revoking deletes what a dead purge had set aside
 *   -DSHARED_PARTS   a part is made in the shared directory: a session that was revoked leaves one of a task that is over
 *   -DALWAYS_OWN     a session keeps the part of a task to itself although another one may have left one among the shared parts
 *   -DNO_LATE        nothing is deleted after the success of a task that a lease was lost of
 *   -DLATE_IF_HELD   it is only where a session that lost one has not said that it stopped when the success is reported
 *   -DOWN_PURGE      a task that is tried again does not wait for a purge of its own that was taken from a session that lives
 */
#define A 1
#define B 2
#define FOREIGN 3
#define PURGE 3
#define SESSIONS 3
#define BIT(s) (1 << (s))

/* The sink. A file is known by its inode: that of A's part, of B's part, or a foreign one. */
byte file, mark;                          /* what stands at the path, and whose mark it has */
byte part[4];                             /* the shared parts, by task */
bit directory[SESSIONS];                  /* the sessions' own directories */
byte staged[SESSIONS];                    /* in them: a part that is about to be put in place */
bit fresh[SESSIONS];                      /* whether that was made there, and never was among the shared parts */
byte aside[SESSIONS], aside_mark[SESSIONS];   /* in them: a file that is about to be deleted */
byte kept, kept_mark;                     /* a file that a revoked session had set aside */

/* The database. */
bit alive[SESSIONS], busy[SESSIONS], leaving;
byte used;                                /* sessions that had a lease: the first is 0, the next 1 */
byte lease[SESSIONS], order[SESSIONS], list[SESSIONS];
bit fenced[4];                            /* tasks of which a lease was lost */
bit alone[SESSIONS];                      /* whether the lease is of a task of which none was */
byte pending;                             /* sessions that died and have to be revoked */
byte holdouts;                            /* sessions that live, and may still be at work on a lease that was taken from them */
byte deleting;                            /* those of them whose lease was of the purge */
byte of_a;                                /* those of them whose lease was of A */
bit live[4], done[4];
byte right[4];                            /* the inode that a task reported */
byte owner = A;
byte purge;                               /* of A's file: 0 none, 1 to be granted, 2 leased */
byte late;                                /* tasks that have succeeded, and whose parts are to be deleted */
bit added, placed, retried;
byte faults;

#if defined(NO_LATE) || defined(LATE_IF_HELD)
#define KEEPS
#endif
#ifdef KEEPS
#define VACANT !file
#define OF_A of_a
#define OF_B (holdouts & ~of_a & ~deleting)
#else
#define VACANT true
#define OF_A 0
#define OF_B 0
#endif

#ifdef NO_MARKS
#define MINE(m) true
#define NO_TELLING true
#else
#define MINE(m) (m == A)
#define NO_TELLING false
#endif

#ifdef NO_LATE
#define DELETES_LATE false
#elif defined(LATE_IF_HELD)
#define DELETES_LATE holdouts
#else
#define DELETES_LATE fenced[job]
#endif

#define FREE(s) (alive[s] && !busy[s])
#define CHECK assert(!done[owner] || file == right[owner])

/* The lowest session of a list. */
#define LOWEST(m) (m & 1 -> 0 : (m & 2 -> 1 : 2))

inline revoke(s, m) {
    do
    :: atomic { m && staged[LOWEST(m)] ->
        if :: !fresh[LOWEST(m)] -> part[staged[LOWEST(m)]] = 1 :: else fi;
        staged[LOWEST(m)] = 0; fresh[LOWEST(m)] = 0 }
    :: atomic { m && aside[LOWEST(m)] ->
#ifdef EMPTY_DELETES
        assert(aside[LOWEST(m)] != FOREIGN);
#else
        kept = aside[LOWEST(m)]; kept_mark = aside_mark[LOWEST(m)];
#endif
        aside[LOWEST(m)] = 0; aside_mark[LOWEST(m)] = 0 }
    :: atomic { m && !staged[LOWEST(m)] && !aside[LOWEST(m)] ->
#ifndef NO_RMDIR
        directory[LOWEST(m)] = 0;
#endif
        if :: alive[s] -> pending = pending & ~BIT(LOWEST(m)) :: else fi;
        m = m & ~BIT(LOWEST(m)) }
    :: !m -> break
    od
}

/* Gives back what was not put in place, or deletes what nobody else knows of. */
inline unstage(s) {
    if :: staged[s] && !fresh[s] -> part[staged[s]] = 1 :: else fi;
    staged[s] = 0; fresh[s] = 0
}

/* Puts back or deletes what was set aside. */
inline settle(s) {
    if
    :: atomic { aside[s] && directory[s] && MINE(aside_mark[s]) ->
        assert(aside[s] != FOREIGN || NO_TELLING);
        aside[s] = 0; aside_mark[s] = 0 }
    :: atomic { aside[s] && directory[s] && !MINE(aside_mark[s]) && !file ->
        file = aside[s]; mark = aside_mark[s]; aside[s] = 0; aside_mark[s] = 0 }
    :: atomic { aside[s] && directory[s] && !MINE(aside_mark[s]) && file -> skip }
    :: atomic { !aside[s] || !directory[s] -> skip }
    fi
}

proctype Worker(byte s) {
    byte job, m, seen;
    bit own;        /* whether the part was in nobody else's hands */
end:
    do
    :: atomic { order[s] -> job = order[s]; order[s] = 0; m = list[s]; list[s] = 0 }
#if !defined(NO_REVOKE) && !defined(EARLY)
        revoke(s, m);
#endif
        if
        :: job == PURGE ->
            part[A] = 0;
            /* What a predecessor had set aside. */
            atomic {
                if
                :: kept && directory[s] && !aside[s] -> aside[s] = kept; aside_mark[s] = kept_mark; kept = 0; kept_mark = 0
                :: else
                fi };
            settle(s);
            atomic { if :: file && MINE(mark) -> seen = 1 :: else fi };
            if
            :: seen ->
                atomic {
                    if
                    :: file && directory[s] && !aside[s] -> aside[s] = file; aside_mark[s] = mark; file = 0; mark = 0; CHECK
                    :: else
                    fi };
                settle(s)
            :: else
            fi;
            seen = 1
        :: else ->
#ifdef LATE_BEGIN
            directory[s] = 1;
#endif
#ifdef SHARED_PARTS
            part[job] = 1;
#else
            /* A file that one request brings whole leaves the session's own directory only for the path. */
            if
#ifdef ALWAYS_OWN
            :: true
#else
            :: alone[s] && !part[job]
#endif
                -> atomic { if :: directory[s] && !staged[s] -> staged[s] = job; fresh[s] = 1 :: else -> goto over fi };
                /* It is shared after all, or not. */
                atomic {
                    if
                    :: staged[s] == job && directory[s] && !part[job] -> staged[s] = 0; fresh[s] = 0; part[job] = 1
                    :: true
                    fi };
                /* It hears that the lease is lost, or gives it back. */
                if :: goto over :: true fi
            :: true -> atomic { if :: part[job] || directory[s] -> part[job] = 1 :: else -> goto over fi }
            fi;
#endif
            atomic {
                if
                :: staged[s] == job && directory[s] -> skip
                :: else -> if :: directory[s] && part[job] && !staged[s] -> part[job] = 0; staged[s] = job :: else -> goto over fi
                fi };
            if
#ifdef FROM_PARTS
            :: true ->
                atomic { if :: staged[s] -> part[staged[s]] = 1; staged[s] = 0; fresh[s] = 0 :: else fi };
                atomic { if :: part[job] -> part[job] = 0; file = job; mark = job; seen = job; CHECK :: else -> goto over fi }
#else
            :: VACANT ->
                atomic { if :: staged[s] == job && directory[s] && VACANT -> own = fresh[s]; staged[s] = 0; fresh[s] = 0; file = job; mark = job; seen = job; CHECK
                    :: else -> goto over fi }
#endif
            :: atomic { file -> seen = file }       /* what stands there is the content */
                atomic {
                    if
                    :: seen == FOREIGN -> skip              /* it is counted, and never changed */
                    :: seen != FOREIGN && file == seen -> mark = job
                    :: else -> if :: kept == seen -> kept_mark = job :: else fi
                    fi };
                if :: atomic { file != seen -> seen = 0; goto over } :: atomic { file == seen -> skip } fi;
                atomic { unstage(s) }
            fi;
#ifdef EARLY
            revoke(s, m);
#endif
            if :: !own -> part[job] = 0 :: else fi
        fi;
over:   atomic { unstage(s); own = 0 };
        atomic {    /* the report, which counts if the lease is still the session's */
            if
            :: seen && alive[s] && lease[s] == PURGE && job == PURGE -> purge = 0; lease[s] = 0
            :: seen && alive[s] && lease[s] == job && job != PURGE -> live[job] = 0; done[job] = 1; right[job] = seen; lease[s] = 0; CHECK;
                if :: DELETES_LATE -> late = late | BIT(job) :: else fi
            :: !seen && alive[s] && lease[s] == job -> lease[s] = 0
            :: !alive[s] || lease[s] != job -> skip
            fi;
            busy[s] = 0; holdouts = holdouts & ~BIT(s); deleting = deleting & ~BIT(s); of_a = of_a & ~BIT(s);
            alone[s] = 0; job = 0; m = 0; seen = 0 }
    /* A clean end: the worker takes nothing more, removes its directory, and says so. */
    :: atomic { (used & BIT(s)) && !leaving && FREE(s) -> leaving = 1; busy[s] = 1 }
        atomic { if :: !staged[s] && !aside[s] -> directory[s] = 0; if :: alive[s] -> alive[s] = 0 :: else fi :: else fi }
    od
}

#define MAY(s) (FREE(s) && (s == 0 || used & BIT(s - 1)))
#define LEASED(t) (lease[0] == t || lease[1] == t || lease[2] == t)
#ifdef NO_WAIT
#define CLEAR true
#define CLEAR_AGAIN true
#else
#define CLEAR (!purge && !(holdouts & ~OF_B))
#ifdef OWN_PURGE
#define CLEAR_AGAIN (!purge && !(holdouts & ~deleting))
#else
#define CLEAR_AGAIN (!purge && !(holdouts & ~OF_A))
#endif
#endif
#ifdef BY_NAME
#define ITS_OWN true
#else
#define ITS_OWN (!LEASED(B) && !done[B])
#endif

#define LEASE(s, job) lease[s] = job; alone[s] = !fenced[job]; order[s] = job; list[s] = pending; busy[s] = 1; used = used | BIT(s)
#define GRANT(s) atomic { MAY(s) && live[A] && !LEASED(A) && CLEAR_AGAIN -> LEASE(s, A) } \
    :: atomic { MAY(s) && live[B] && !LEASED(B) && CLEAR -> LEASE(s, B) } \
    :: atomic { MAY(s) && purge == 1 && !(holdouts & ~deleting) -> LEASE(s, PURGE); purge = 2 }
/* A session is given up, and what it held goes to others. */
#define GIVE_UP(s) atomic { faults < 2 && alive[s] && (used & BIT(s)) -> faults++; alive[s] = 0; pending = pending | BIT(s); \
    holdouts = holdouts & ~BIT(s); deleting = deleting & ~BIT(s); of_a = of_a & ~BIT(s); \
    if :: lease[s] == PURGE -> purge = 1 :: else -> fenced[lease[s]] = lease[s] > 0 fi; lease[s] = 0 }
/* A lease is taken from a session that lives. */
#define STALL(s) atomic { faults < 2 && alive[s] && lease[s] -> faults++; holdouts = holdouts | BIT(s); \
    if :: lease[s] == PURGE -> purge = 1; deleting = deleting | BIT(s) \
    :: else -> fenced[lease[s]] = 1; if :: lease[s] == A -> of_a = of_a | BIT(s) :: else fi fi; lease[s] = 0 }

/* The parts of tasks that have succeeded are deleted, after all sessions that died are revoked. Nothing else is touched by that, and later content
 * of the task has parts by other names: so when it is done makes no difference, and it is one step. */
#define DELETE_LATE atomic { late && !holdouts && (FREE(0) || FREE(1) || FREE(2)) -> \
    do \
    :: pending -> \
        if :: staged[LOWEST(pending)] && !fresh[LOWEST(pending)] -> part[staged[LOWEST(pending)]] = 1 :: else fi; \
        staged[LOWEST(pending)] = 0; fresh[LOWEST(pending)] = 0; \
        if :: aside[LOWEST(pending)] -> kept = aside[LOWEST(pending)]; kept_mark = aside_mark[LOWEST(pending)] :: else fi; \
        aside[LOWEST(pending)] = 0; aside_mark[LOWEST(pending)] = 0; \
        directory[LOWEST(pending)] = 0; pending = pending & ~BIT(LOWEST(pending)) \
    :: !pending -> break \
    od; \
    if :: late & BIT(A) -> part[A] = 0 :: else fi; \
    if :: late & BIT(B) -> part[B] = 0 :: else fi; \
    late = 0 }

proctype Database() {
    byte s;
end:
    do
    :: atomic { live[A] -> live[A] = 0; purge = 1;       /* cancel, or remove without files */
        s = 0;
        do
        :: s < SESSIONS -> if
            :: lease[s] == A -> lease[s] = 0; holdouts = holdouts | BIT(s); of_a = of_a | BIT(s)
            /* Another purge takes the place of one that is leased. */
            :: lease[s] == PURGE -> lease[s] = 0; holdouts = holdouts | BIT(s); deleting = deleting | BIT(s)
            :: else
            fi;
            s++
        :: else -> break
        od }
    :: atomic { done[A] && !purge -> done[A] = 0;        /* remove with files */
        if :: ITS_OWN -> purge = 1 :: else fi }
    :: atomic { faults < 2 && !live[A] && !done[A] && !added && !retried -> faults++; retried = 1; live[A] = 1; late = late & ~BIT(A) }    /* retry */
    :: atomic { !live[A] && !added -> added = 1; live[B] = 1; owner = B }
    :: atomic { !placed && !done[owner] && !LEASED(A) && !LEASED(B) -> placed = 1; file = FOREIGN; mark = 0 }   /* somebody else's */
    :: GRANT(0) :: GRANT(1) :: GRANT(2)
    :: DELETE_LATE
    :: GIVE_UP(0) :: GIVE_UP(1) :: GIVE_UP(2)
    :: STALL(0) :: STALL(1) :: STALL(2)
    /* Nobody has anything to do: then nothing is left to be done, unless nobody is there to do it. */
    :: timeout -> assert(!live[A] && !live[B] && !purge && !late || !FREE(0) && !FREE(1) && !FREE(2));
        /* Nothing is left of a task that is over (I13). */
        assert(live[A] || purge || late & BIT(A) || !part[A]);
        assert(live[B] || late & BIT(B) || !part[B]);
        break
    od
}

init {
    atomic {
        live[A] = 1;
        alive[0] = 1; alive[1] = 1; alive[2] = 1;
#ifndef LATE_BEGIN
        directory[0] = 1; directory[1] = 1; directory[2] = 1;       /* before anything is leased to them */
#endif
        run Database(); run Worker(0); run Worker(1); run Worker(2)
    }
}
