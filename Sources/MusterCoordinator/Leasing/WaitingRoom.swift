import MusterCore

/// The syncs that wait for work, as a state machine without I/O: who is asked for next, who has waited long enough, who was
/// superseded. Times are nanoseconds of the coordinator's monotonic clock; they decide about waiting, never about leases (I11).
struct WaitingRoom<Ticket: Sendable> {
    /// A sync that asks for work.
    struct Guest {
        /// The session.
        let session: SessionID
        /// The number of the sync.
        let sequence: Int64
        /// How many transfers it can begin.
        let room: Int32
        /// How many leases it takes besides.
        let ahead: Int32
        /// When it is to be answered at the latest.
        let deadline: Int64
        /// What its answer goes to.
        let ticket: Ticket

        /// Whether it asks for work at all. One that does not waits only to be told something.
        var takesWork: Bool { room > 0 || ahead > 0 }
    }

    /// Where a guest is.
    private enum Place {
        /// Not asked for since it came, or since there was last something new. Goes to `inClaim`.
        case fresh
        /// In the claim that runs now. Goes to `waiting`, or leaves.
        case inClaim
        /// There was nothing for it, or it takes none. Goes to `fresh` at the next news, or leaves at its deadline.
        case waiting
    }

    private var guests: [SessionID: (guest: Guest, place: Place)] = [:]
    /// News that came while a claim was running may have been too late for it.
    private var hasNews = false
    private var isClaiming = false

    /// How many guests there are.
    var count: Int { guests.count }

    /// A sync comes in. An earlier one of its session is superseded and returned, to be answered with nothing; a later one
    /// that is here already supersedes the newcomer.
    mutating func enter(_ guest: Guest) -> Guest? {
        if let present = guests[guest.session]?.guest, present.sequence >= guest.sequence { return guest }
        let before = guests.updateValue((guest, guest.takesWork ? .fresh : .waiting), forKey: guest.session)
        return before?.guest
    }

    /// A sync's client has gone. Returns the guest if it was still here.
    mutating func leave(_ session: SessionID, sequence: Int64) -> Guest? {
        guard let present = guests[session]?.guest, present.sequence == sequence else { return nil }
        guests[session] = nil
        return present
    }

    /// There may be something new to lease.
    mutating func news() {
        if isClaiming { hasNews = true }
        for (session, entry) in guests where entry.place == .waiting && entry.guest.takesWork {
            guests[session]?.place = .fresh
        }
    }

    /// The guests that a claim shall be run for now; empty when there are none, or when one is running.
    mutating func beginClaim() -> [Guest] {
        guard !isClaiming else { return [] }
        let fresh = guests.values.filter { $0.place == .fresh }.map(\.guest).sorted { $0.session < $1.session }
        guard !fresh.isEmpty else { return [] }
        isClaiming = true
        hasNews = false
        for guest in fresh { guests[guest.session]?.place = .inClaim }
        return fresh
    }

    /// The claim is over. Those who were granted something or have to be told something, or whose time is up, leave and are returned.
    mutating func endClaim(granted: Set<SessionID>, now: Int64) -> [Guest] {
        isClaiming = false
        var answered: [Guest] = []
        for (session, entry) in guests where entry.place == .inClaim {
            if granted.contains(session) || entry.guest.deadline <= now {
                answered.append(entry.guest)
                guests[session] = nil
            } else {
                guests[session]?.place = hasNews ? .fresh : .waiting
            }
        }
        return answered
    }

    /// Those who have waited long enough leave.
    mutating func expire(now: Int64) -> [Guest] {
        let late = guests.values.filter { $0.place == .waiting && $0.guest.deadline <= now }.map(\.guest)
        for guest in late { guests[guest.session] = nil }
        return late
    }

    /// Those of these sessions who wait leave: there is something to tell them. Who is in a claim leaves with it.
    mutating func dismiss(_ sessions: Set<SessionID>) -> [Guest] {
        let told = guests.values.filter { $0.place != .inClaim && sessions.contains($0.guest.session) }.map(\.guest)
        for guest in told { guests[guest.session] = nil }
        return told
    }

    /// Lets all guests leave.
    mutating func close() -> [Guest] {
        defer { guests.removeAll() }
        return guests.values.map(\.guest)
    }
}
