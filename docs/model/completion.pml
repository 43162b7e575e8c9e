/* How a group completes (docs/architecture.md, "A group") and how its events get their positions (docs/adr/0029): two tasks that may end at once,
 * a third that is added, and verbs that race them.
 *
 * A transaction locks the row of the group, reads, and commits: three steps, between which all others go on. READ COMMITTED: a read sees what was
 * committed before it, and nothing that is not. A transaction that dies is rolled back and repeated, and one whose reply is lost is repeated after
 * its commit. With -DLOG the model is about the log alone: two transactions of the group write events, and one of another group; two coordinators
 * give out positions, and a reader goes on after its last one.
 *
 * What is checked:
 *   I6  at each commit the counts of the group are those of its tasks
 *   I7  a generation ends with one event, only if the group is sealed and each task is terminal; and a group that is both does end
 *   I9  positions are contiguous, and in the order of the commits of a group; the reader misses no event
 *
 *   -DNO_LOCK         a finisher counts the unfinished tasks without the lock of the group
 *   -DUNSEALED        the zero test does not ask whether the group is sealed
 *   -DAGAIN           the zero test does not ask whether the group has ended
 *   -DONE_GENERATION  a group that is opened again keeps its generation
 *   -DADDS_LATE       an addition does not read the state of the group again under its lock
 *   -DANY_TASK        a report does not look whether its task has ended meanwhile
 *   -DNO_TEST         a seal does not make the zero test
 *   -DBY_SERIAL       an event has the position that it gets when it is written, before the commit
 *   -DFREE_LOG        events get their positions from a counter, without the lock of the log
 *   -DEARLY_SERIAL    an event is numbered before its transaction has the lock of the group
 */
#ifndef VERBS
#define VERBS 4         /* how many verbs there are: seal, cancel, retry, reopen */
#endif
#define GENERATIONS 3
#define TASKS 3
#define BIT(n) (1 << (n))

#if defined(BY_SERIAL) || defined(FREE_LOG) || defined(EARLY_SERIAL)
#define LOG
#endif

#ifndef LOG
/* What is committed. */
mtype { OPEN, SEALED, SUCCEEDED, FAILED, CANCELLED, QUEUED, ABSENT }
mtype group = OPEN, task[TASKS];
byte generation = 1, queued = 2, succeeded, failed, cancelled;
bit cancels;                                    /* the wish for the whole group */
byte ended[GENERATIONS + 1];                    /* terminal events of each generation */
byte group_lock;                                /* who has locked the row of the group; 0 is free */
byte verbs, faults;

#define TERMINAL(t) (task[t] == SUCCEEDED || task[t] == FAILED || task[t] == CANCELLED || task[t] == ABSENT)
#define ALL_TERMINAL (TERMINAL(0) && TERMINAL(1) && TERMINAL(2))
#define OVER (group == SUCCEEDED || group == FAILED || group == CANCELLED)
#define COUNT(s) ((task[0] == s) + (task[1] == s) + (task[2] == s))
#define CHECK assert(queued == COUNT(QUEUED) && succeeded == COUNT(SUCCEEDED) && failed == COUNT(FAILED) && cancelled == COUNT(CANCELLED)); \
    assert(!OVER || ALL_TERMINAL)

#define MAY_FAIL (faults < 2)

#ifdef UNSEALED
#define CLOSES (!OVER && !queued)
#elif defined(AGAIN)
#define CLOSES (group != OPEN && !queued)
#else
#define CLOSES (group == SEALED && !queued)
#endif

/* close_groups(): the zero test. */
inline end_group() {
    assert(group != OPEN && ALL_TERMINAL && !ended[generation]);
    ended[generation]++;
    group = (cancels -> CANCELLED : (failed -> FAILED : SUCCEEDED))
}
inline close() {
    if :: CLOSES -> end_group() :: else fi
}

/* The next generation of a group that has ended. */
inline begin_again() {
    assert(ended[generation] == 1);
#ifndef ONE_GENERATION
    generation++;
#endif
    cancels = 0
}

inline cancel(t) {
    if :: task[t] == QUEUED -> task[t] = CANCELLED; queued--; cancelled++ :: else fi
}

#define LOCK(me) !group_lock -> group_lock = me

/* report_contents(), or a failure: the lease exists as long as the task has not ended. */
proctype Finisher(byte t) {
    bit acts, fails, repeats;
    byte rest;
end:
    do
    :: atomic { task[t] == QUEUED || repeats ->
        if :: fails = 0 :: fails = 1 fi }
#ifndef NO_LOCK
        atomic { LOCK(t + 1) };
#endif
        atomic {                        /* the statement reads */
#ifdef ANY_TASK
            acts = task[t] != ABSENT;
#else
            acts = task[t] == QUEUED && !repeats;
#endif
            rest = COUNT(QUEUED) - (task[t] == QUEUED) };
        atomic {
            if
            :: acts ->
                if
                :: MAY_FAIL -> faults++                         /* it dies, and is repeated */
                :: true ->
                    queued--;
                    if :: fails -> task[t] = FAILED; failed++ :: else -> task[t] = SUCCEEDED; succeeded++ fi;
#ifdef NO_LOCK
                    if :: group == SEALED && !rest -> end_group() :: else fi;
#else
                    close();
#endif
                    CHECK;
                    if :: repeats = 0 :: MAY_FAIL -> faults++; repeats = 1 fi       /* its reply is lost */
                fi
            :: else -> repeats = 0
            fi;
#ifndef NO_LOCK
            group_lock = 0;
#endif
            acts = 0; fails = 0; rest = 0 }
    od
}

/* add_tasks(): reads the group without its lock, inserts the task, and locks the group to count it. */
proctype Adder() {
    mtype seen;
again:
    seen = group;
    atomic { LOCK(4) };
    atomic {
        if
        :: seen == OPEN ->
            if
#ifdef ADDS_LATE
            :: true -> task[2] = QUEUED; queued++
#else
            :: group == OPEN -> task[2] = QUEUED; queued++
            :: group != OPEN -> group_lock = 0; goto again      /* the group has changed */
#endif
            fi
        /* reopen_group() */
        :: seen != OPEN && (OVER && generation == GENERATIONS || cancels && !OVER)
        :: seen != OPEN && !(OVER && generation == GENERATIONS) && !(cancels && !OVER) ->
            if :: OVER -> begin_again() :: else fi;
            group = OPEN; task[2] = QUEUED; queued++
        :: seen != OPEN                                         /* the addition is refused */
        fi;
        CHECK;
        group_lock = 0; seen = 0 }
}

proctype User() {
end:
    do
    :: atomic { verbs < VERBS && !group_lock -> verbs++; group_lock = 5 };
        atomic {
            if
            :: MAY_FAIL -> faults++                             /* it dies */
            :: group == OPEN -> group = SEALED;                 /* seal_group() */
#ifndef NO_TEST
                close()
#endif
            :: group != OPEN -> close()
            :: !OVER ->                                         /* cancel_group(): all, or a slice, with which the sweep goes on */
                cancels = 1; group = SEALED; cancel(0);
                if :: cancel(1); cancel(2) :: true fi;
                close()
            :: task[1] == QUEUED -> cancel(1); close()   /* a task by its key */
            :: failed && !(cancels && !OVER) && !(OVER && generation == GENERATIONS) ->     /* retry_group() */
                if :: OVER -> begin_again() :: else fi;
                if :: OVER -> group = SEALED :: else fi;
                if :: task[0] == FAILED -> task[0] = QUEUED; failed--; queued++ :: else fi;
                if :: task[1] == FAILED -> task[1] = QUEUED; failed--; queued++ :: else fi;
                if :: task[2] == FAILED -> task[2] = QUEUED; failed--; queued++ :: else fi;
                cancels = 0;
                close()
            :: group == SEALED && !cancels -> group = OPEN      /* reopen_group() */
            :: OVER && generation < GENERATIONS -> begin_again(); group = OPEN
            fi;
            CHECK;
            group_lock = 0 }
    /* sweep_wishes() */
    :: atomic { cancels && !OVER && !group_lock -> group_lock = 5 };
        atomic { if :: cancels && !OVER -> cancel(0); cancel(1); cancel(2); close(); CHECK :: else fi; group_lock = 0 }
    od
}

proctype Quiet() {
    /* Nothing is left to be done. */
    timeout -> assert(!(group == SEALED && ALL_TERMINAL) && (!cancels || OVER)); assert(!OVER || ended[generation] == 1)
}

init {
    atomic {
        task[0] = QUEUED; task[1] = QUEUED; task[2] = ABSENT;
        run Finisher(0); run Finisher(1); run Finisher(2);
        run Adder(); run User(); run Quiet()
    }
}

#else
/* Events by their serials: those of the group, and rows of pending_events that are committed. */
int ours, pending;
byte serials;
byte last, counter, readTo;                     /* the newest position, the counter of FREE_LOG, where the reader is */
byte order;                                     /* one more than the serial of the newest event of the group in the log */
byte group_lock, log_lock, faults;              /* who has locked the rows of the group and of the log; 0 is free */
#ifdef FREE_LOG
int claimed;
#endif

#define MAY_FAIL (faults < 2)

/* A row of pending_events is committed. With BY_SERIAL readers see it at once. */
inline emit(e) {
#ifdef BY_SERIAL
    assert(e >= readTo);
    if :: e + 1 > last -> last = e + 1 :: else fi
#else
    pending = pending | BIT(e)
#endif
}

/* A transaction of the group, with an event of a task and one of the group. */
proctype Writer(byte me) {
    byte first, second;
again:
#ifdef EARLY_SERIAL
    atomic { first = serials; serials++ };
    atomic { !group_lock -> group_lock = me };
#else
    atomic { !group_lock -> group_lock = me };
    atomic { first = serials; serials++ };
#endif
    atomic { second = serials; serials++ };
    atomic {
        group_lock = 0;
        if
        :: MAY_FAIL -> faults++; first = 0; second = 0; goto again      /* it dies, and is repeated */
        :: true -> ours = ours | BIT(first) | BIT(second); emit(first); emit(second); first = 0; second = 0
        fi }
}

/* A transaction of another group, which has no lock in common with these. */
proctype Elsewhere() {
    byte event;
    atomic { event = serials; serials++ };
    atomic { emit(event) }
}

#ifndef BY_SERIAL
inline count(set) {
    n = 0; i = 0;
    do
    :: i < serials -> if :: (set) & BIT(i) -> n++ :: else fi; i++
    :: else -> break
    od;
    i = 0
}

/* sequence_events(): the lock first, then the rows, in two statements. */
proctype Sequencer(byte me) {
    int taken;
    byte from, n, i;
end:
    do
#ifdef FREE_LOG
    :: atomic { pending & ~claimed -> taken = pending & ~claimed; claimed = claimed | taken;
            count(taken); from = counter; counter = counter + n; n = 0 };
#else
    :: atomic { pending && !log_lock -> log_lock = me; from = last };
        atomic { taken = pending };
#endif
        atomic {
            if
#ifdef FREE_LOG
            :: MAY_FAIL -> faults++; claimed = claimed & ~taken         /* it dies */
#else
            :: MAY_FAIL -> faults++                                     /* it dies */
#endif
            :: true ->
                assert(from >= readTo && last == from);
                pending = pending & ~taken;
                count(taken);
                last = from + n;
                /* The group's events have the order of its commits, which is that of their serials: these are drawn under its lock. */
                do
                :: i < serials -> if :: taken & ours & BIT(i) -> assert(i >= order); order = i + 1 :: else fi; i++
                :: else -> break
                od
            fi;
            log_lock = 0;
            taken = 0; from = 0; n = 0; i = 0 }
    od
}
#endif

proctype Reader() {
end:
    do
    :: atomic { readTo < last -> readTo = last }
    od
}

proctype Quiet() {
    /* Nothing is left to be done. */
    timeout -> assert(!pending && readTo == last)
}

init {
    atomic {
        run Writer(1); run Writer(2); run Elsewhere(); run Reader(); run Quiet();
#ifndef BY_SERIAL
        run Sequencer(1); run Sequencer(2)
#endif
    }
}
#endif
