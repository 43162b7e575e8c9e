/* How a chunk is leased (docs/protocol.md, "A sync" and "Trust"): one task of some units of bytes, sessions that fetch it, and a database that grants
 * chunks of it, takes them back and cuts them (docs/adr/0012).
 *
 * Syncs are lost, doubled, late and overtaken, answers are lost and late, as often as FAULTS says. A worker is stopped between any two steps and goes
 * on at any later time: nothing makes a process of the model take its next step. A write that was allowed before a stop lands after it, in the part
 * that the worker has open. The coordinator stops between the transactions of a sync: it renews the session; it stores the report and grants.
 *
 * Time is that of one session, whose worker goes by its own clock: one step of it ends the trust and the session, unless they are renewed. With
 * -DSHRINKS time stands still, and a holder may be asked to end its chunk sooner. A worker has one lease, and awaits one answer at a time. Not in the
 * model: content versions, tails that are given back (docs/adr/0037), and a database that returns in an older state (docs/adr/0022).
 *
 * What is checked:
 *   I1   no report is accepted once a newer epoch of its chunk was granted, and epochs increase
 *   I2   a chunk is in exactly one of the tables of ready, leased and done chunks
 *   I4   a durable offset never decreases, and what is before it is synced; so is all of a chunk that is done
 *   I8   nothing is written into a file that is in place: where a lease was lost, that file is a copy of the part
 *   I16  no unit is fetched twice that was durable when its holder was lost, nor one of a lease that was not lost
 *   and that no write begins for a session that the database has ended (docs/protocol.md, "Trust").
 *
 *   -DNO_EPOCH      a report is accepted for the chunk and the session that it names, whatever its epoch
 *   -DSAME_EPOCH    a chunk that goes back keeps its epoch
 *   -DFROM_ANSWER   trust counts from the answer, not from before the request
 *   -DNO_GATE       trust is not looked at before a write
 *   -DEARLY         an offset is reported before the bytes are synced
 *   -DBACKWARDS     the offset of a report replaces the known one
 *   -DNO_FENCE      the part itself is put in place though a lease was lost
 *   -DREPAIRS_ALL   a lease that a sync does not name goes back although the answer with it may be awaited
 *   -DLATE_ANSWERS  a worker takes in an answer that it has given up
 *   -DCUTS_ALONE    the database cuts a chunk when it asks the holder, and does not wait for its word
 *   -DASKED_END     the database cuts where it asked, not where the holder says
 *   -DWRITES_ON     a holder gives a lease back while a write of it is under way
 */
#define SESSIONS 2
#ifdef ASKED_END
#define UNITS 3
#endif
#if defined(CUTS_ALONE) || defined(ASKED_END)
#define SHRINKS
#endif
#ifndef UNITS
#define UNITS 2
#endif
#ifndef EPOCHS
#define EPOCHS 3        /* leases that are granted at most */
#endif
#ifndef SYNCS
#define SYNCS 3         /* syncs of a session; the second one has one less */
#endif
#define TTL 1
#ifndef FAULTS
#define FAULTS 2        /* messages that are lost, doubled, overtaken or given up, and leases that are taken from a session that lives */
#endif
#define BIT(n) (1 << (n))
#define BITS(from, to) (BIT(to) - BIT(from))            /* the units from, ..., to - 1 */

/* The database. Chunk 0 is the beginning of the file, chunk 1 what was cut off it. */
byte ready = BIT(0), leased, done;                      /* chunks */
byte cut = UNITS;                                       /* where chunk 0 ends */
byte holder[2], epoch[2], since[2], durable[2];         /* of each chunk: the session, the epoch and the sync of its lease */
byte epochs, faults;
bit known[SESSIONS], fenced;
byte heard[SESSIONS], life[SESSIONS];                   /* the newest sync, and the time to live */

/* Storage. */
byte synced;                                            /* units of the part */
bit placed, copied;                                     /* whether the file is in place, and whether it is a copy */
byte fetched, lost;                                     /* units that were fetched, and those that were not durable when a lease was lost */

/* The workers. The name of a lease is made of its epoch and its chunk. */
byte trust[SESSIONS], offer[SESSIONS];                  /* how long trust lasts, and how long it would by the answer that is awaited */

#define NOTHING 0
mtype { ASKS, PROGRESS, DONE, RELEASED, SHRUNK }
chan syncs = [2] of { byte, byte, byte, byte, mtype, byte };   /* session, number, settled, lease that is held, report on it, its offset */
/* Session, number, lost lease, granted lease, its offset and end, whether it is to end sooner. */
chan answers = [1] of { byte, byte, byte, byte, byte, byte, bit };
#define OVER 255        /* in place of a lost lease: the session is over */
#define ASKED 1         /* where chunk 0 is to end when its holder is asked */

#define NAME(e, c) ((e) * 2 + (c))
#define CHUNK(n) ((n) & 1)
#define FIRST(c) ((c) -> cut : 0)
#define LAST(c) ((c) -> UNITS : cut)
#define LIVE (cut < UNITS -> 3 : 1)
#define CHECK assert((ready | leased | done) == LIVE && !(ready & leased) && !((ready | leased) & done))

/* A lease goes back: lost, or with the word of its holder that it has stopped. */
inline give_back(c, is_lost) {
    if
    :: is_lost -> fenced = 1; lost = lost | BITS(durable[c], LAST(c))
    :: else
    fi;
    leased = leased & ~BIT(c);
    ready = ready | BIT(c);
    holder[c] = 0; since[c] = 0;
#ifndef SAME_EPOCH
    epoch[c] = 0;
#endif
    CHECK
}

#ifdef NO_EPOCH
#define HOLDS(s, n) (n && leased & BIT(CHUNK(n)) && holder[CHUNK(n)] == s)
#else
#define HOLDS(s, n) (n && leased & BIT(CHUNK(n)) && holder[CHUNK(n)] == s && NAME(epoch[CHUNK(n)], CHUNK(n)) == n)
#endif

inline move(c, offset) {
#ifdef BACKWARDS
    assert(offset >= durable[c]);
    durable[c] = offset;
#else
    if :: offset > durable[c] -> durable[c] = offset :: else fi;
#endif
    assert((synced & BITS(FIRST(c), durable[c])) == BITS(FIRST(c), durable[c]))
}

inline end_at(e) {
    if
    :: e > 0 && e >= durable[0] && e < cut && cut == UNITS -> cut = e; ready = ready | 2; durable[1] = e; CHECK
    :: else
    fi
}

#ifdef REPAIRS_ALL
#define REPAIRED number
#else
#define REPAIRED settled
#endif

/* sync_session(): the session lives on. A lease of a settled sync that the worker does not hold was never received: it goes back. */
inline renew(s) {
    if
    :: number > heard[s] -> heard[s] = number; life[s] = TTL
    :: else
    fi;
    if
    :: number == heard[s] ->
        c = 0;
        do
        :: c < 2 ->
            if
            :: leased & BIT(c) && holder[c] == s && NAME(epoch[c], c) != held && since[c] <= REPAIRED -> give_back(c, false)
            :: else
            fi;
            c++
        :: else -> break
        od;
        c = 0
    :: else
    fi;
    gone = (HOLDS(s, held) -> 0 : held)
}

/* The reports: each changes nothing unless its lease is still the session's. */
inline write(s) {
    c = CHUNK(held);
    if
    :: HOLDS(s, held) ->
        assert(held == NAME(epoch[c], c));
        if
        :: report == PROGRESS && offset <= LAST(c) -> move(c, offset)
        :: report == PROGRESS && offset > LAST(c) || report == NOTHING
        :: report == DONE ->
            assert((synced & BITS(FIRST(c), LAST(c))) == BITS(FIRST(c), LAST(c)));
            leased = leased & ~BIT(c); done = done | BIT(c); durable[c] = LAST(c);
            holder[c] = 0; epoch[c] = 0; since[c] = 0; CHECK
        :: report == RELEASED -> move(c, offset); give_back(c, false)
#ifdef ASKED_END
        :: report == SHRUNK -> if :: c == 0 && offset < cut -> end_at(ASKED) :: else fi
#else
        :: report == SHRUNK -> if :: c == 0 -> end_at(offset) :: else fi
#endif
        fi
    :: else
    fi;
    c = 0
}

inline answer(s) {
    if
    :: nfull(answers) -> answers ! s, number, gone, granted, from, to, wish
    :: faults < FAULTS -> faults++                      /* lost */
    fi
}

/* lease_chunks(): only for the newest sync of a session that lives. A holder may be asked to end its chunk sooner. */
inline grant(s) {
    if
    :: number == heard[s] && known[s] && life[s] && report == ASKS && epochs < EPOCHS ->
        if
        :: ready & 1 -> c = 0
        :: ready & 2 -> c = 1
        :: c = 2
        fi;
        if
        :: c < 2 ->
#ifdef SAME_EPOCH
            if :: !epoch[c] -> epochs++; epoch[c] = epochs :: else fi;
#else
            epochs++;
            epoch[c] = epochs;
#endif
            ready = ready & ~BIT(c);
            leased = leased | BIT(c);
            holder[c] = s; since[c] = number;
            granted = NAME(epoch[c], c); from = durable[c]; to = LAST(c);
            CHECK
        :: else
        fi;
        c = 0
    :: else
    fi;
#ifdef SHRINKS
    if
    :: leased & 1 && holder[0] == s && cut == UNITS -> wish = 1;
#ifdef CUTS_ALONE
        end_at(ASKED)
#endif
    :: true
    fi;
#endif
    answer(s)
}

proctype Coordinator() {
    byte s, c, number, settled, held, offset, gone, granted, from, to;
    bit wish;
    mtype report;
end:
    do
    :: atomic {
        if
        :: syncs ? s, number, settled, held, report, offset
        :: nempty(syncs) && faults < FAULTS -> faults++; syncs ? <s, number, settled, held, report, offset>      /* doubled: it comes again */
        fi;
        if
        :: known[s] -> renew(s)
        :: else -> gone = OVER; answer(s); goto served
        fi }
        atomic { write(s); grant(s);
served:     s = 0; number = 0; settled = 0; held = 0; offset = 0; gone = 0; granted = 0; from = 0; to = 0; wish = 0; report = 0 }
    od
}

#define TICK(n) n = (n -> n - 1 : 0)
#define EXPIRE(s) atomic { known[s] && !life[s] -> known[s] = 0; heard[s] = 0 }
/* A lease is taken back: its session has ended, or the holder is slow or silent, or a user pauses the task. */
#define TAKE(c) atomic { leased & BIT(c) && known[holder[c]] && faults < FAULTS -> faults++; give_back(c, true) }
#define SWEEP(c) atomic { leased & BIT(c) && !known[holder[c]] -> give_back(c, true) }
proctype World() {
    byte s, a, b, d, e;
    mtype m;
end:
    do
#ifndef SHRINKS
    :: d_step { TICK(life[0]); TICK(trust[0]); TICK(offer[0]) }
    :: EXPIRE(0)
#endif
    :: TAKE(0) :: TAKE(1)
    :: SWEEP(0) :: SWEEP(1)
    /* A sync is overtaken by the next one. */
    :: atomic { len(syncs) == 2 && faults < FAULTS -> faults++; syncs ? s, a, b, d, m, e; syncs ! s, a, b, d, m, e; s = 0; a = 0; b = 0; d = 0; m = 0; e = 0 }
    :: atomic { done == LIVE && !placed -> placed = 1;
#ifndef NO_FENCE
        copied = fenced
#endif
        }
    od
}

/* The lease is over, or lost. A write that is under way ends later. */
inline leave() {
    shrunk = 0;
    phase = NOTHING;
    if :: !flying -> lease = 0; at = 0; bound = 0 :: else fi
}

inline begin_write(s) {
    assert(known[s]);
    if
    :: HOLDS(s, lease) -> assert(!(fetched & BIT(at)) || lost & BIT(at)); fetched = fetched | BIT(at); lost = lost & ~BIT(at)
    :: else
    fi;
    flying = 1
}

inline take(s) {
    answers ?? eval(s), number, gone, granted, from, to, wish;
    if
#ifdef LATE_ANSWERS
    :: true ->
#else
    :: number == sent && awaits ->
#endif
        if
        :: gone == OVER -> sent = SYNCS; awaits = 0; trust[s] = 0; leave()
        :: gone != OVER ->
#ifdef FROM_ANSWER
            trust[s] = TTL;
#else
            if :: offer[s] > trust[s] -> trust[s] = offer[s] :: else fi;
#endif
            if
            :: told == SHRUNK -> shrunk = 0
            :: told == DONE || told == RELEASED -> leave()
            :: else
            fi;
            awaits = 0;
            if :: gone && gone == lease -> leave() :: else fi;
            if
            :: granted && !lease -> lease = granted; at = from; bound = to; phase = PROGRESS
            :: else
            fi;
            if
            :: wish && phase == PROGRESS && !CHUNK(lease) ->
                from = (at + flying > ASKED -> at + flying : ASKED);
                if :: from < bound -> bound = from :: else fi;
                shrunk = 1
            :: else
            fi
        fi;
        offer[s] = 0; told = 0
    :: else
    fi;
    number = 0; gone = 0; granted = 0; from = 0; to = 0; wish = 0
}

proctype Worker(byte s) {
    byte sent;                          /* the newest sync */
    byte lease, at, bound;              /* its lease, the next unit, the end of the chunk */
    mtype phase, told;                  /* what is to be reported of the lease, and what the newest sync reports */
    bit awaits, flying, shrunk;         /* whether the answer is awaited, a write is under way, the end of the chunk is to be reported */
    byte number, gone, granted, from, to;
    bit wish;
end:
    do
    /* What is reported as durable is synced before that. */
    :: atomic { !awaits && sent < SYNCS - s && (lease || epochs < EPOCHS) && (!s || epochs) ->
        told = (shrunk -> SHRUNK : (lease -> phase : ASKS));
#ifndef EARLY
        if :: phase != NOTHING -> synced = synced | BITS(CHUNK(lease) * cut, at) :: else fi;
#endif
        if :: nfull(syncs) -> syncs ! s, sent + 1, sent, lease, told, (shrunk -> bound : at) :: faults < FAULTS -> faults++ fi;
        sent++; awaits = 1; offer[s] = TTL }
    /* It gives the answer up. */
    :: atomic { awaits && faults < FAULTS -> faults++; awaits = 0; offer[s] = 0; told = 0 }
    :: atomic { answers ?? [eval(s), number, gone, granted, from, to, wish] -> take(s) }
    /* The trust is looked at, the unit is claimed, and the write begins. It lands at any later time. */
#ifdef NO_GATE
    :: atomic { phase == PROGRESS && !flying && at < bound -> begin_write(s) }
#else
    :: atomic { phase == PROGRESS && !flying && at < bound && trust[s] -> begin_write(s) }
#endif
    :: atomic { flying -> flying = 0;
        assert(!placed || copied);
        at++;
        if :: phase == NOTHING -> lease = 0; at = 0; bound = 0 :: else fi }
    :: atomic { phase == PROGRESS && !flying && at == bound -> phase = DONE }
#ifdef WRITES_ON
    :: atomic { phase == PROGRESS && at < bound -> phase = RELEASED }
#else
    :: atomic { phase == PROGRESS && !flying && at < bound -> phase = RELEASED }
#endif
    od
}

init {
    atomic {
        byte s;
        for (s : 0 .. SESSIONS - 1) { known[s] = 1; life[s] = TTL; trust[s] = TTL; run Worker(s) }
        run Coordinator(); run World()
    }
}
