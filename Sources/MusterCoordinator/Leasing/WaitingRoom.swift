import MusterCore

/// The syncs that wait for work, as a state machine without I/O: which sync is asked for next, which has waited long
/// enough, which was superseded. Times are nanoseconds of the coordinator's monotonic clock; they decide about waiting,
/// never about leases (I11).
struct WaitingRoom<Ticket: Sendable> {
    /// A sync that asks for work.
    struct Guest {
        /// The session.
        let session: SessionID
        /// The number of the sync.
        let sequence: Int64
        /// How many transfers it can begin.
        let room: Int32
        /// How many further leases it takes, for the worker's queue.
        let ahead: Int32
        /// Whether it begins one more transfer for a group that has no connection.
        var spare = false
        /// The latest time of its answer.
        let deadline: Int64
        /// The receiver of its answer.
        let ticket: Ticket

        /// Whether it asks for work at all. A sync that does not only waits to be told something.
        var takesWork: Bool { room > 0 || ahead > 0 || spare }
    }

    /// The state of a guest.
    private enum Place {
        /// No claim has been made for it since it came, or since the last news. Goes to `inClaim`.
        case fresh
        /// In the claim that runs now. Goes to `waiting`, or leaves.
        case inClaim
        /// There was no work for it, or it takes none. Goes to `fresh` at the next news, or leaves at its deadline.
        case waiting
    }

    /// Read by closures, not by key paths: a key path into a generic type is made anew at each use, which was most of what a claim costs here.
    private var guests: [SessionID: (guest: Guest, place: Place)] = [:]
    /// News that came while a claim was running may have been too late for it.
    private var hasNews = false
    private var isClaiming = false

    /// How many guests there are.
    var count: Int { guests.count }

    /// Adds a sync. An earlier sync of its session is superseded and returned, to be answered with nothing; if a later one
    /// is here already, the new sync itself is returned.
    mutating func enter(_ guest: Guest) -> Guest? {
        if let present = guests[guest.session]?.guest, present.sequence >= guest.sequence { return guest }
        let before = guests.updateValue((guest, guest.takesWork ? .fresh : .waiting), forKey: guest.session)
        return before?.guest
    }

    /// Removes a sync whose client has gone. Returns the guest if it was still here.
    mutating func leave(_ session: SessionID, sequence: Int64) -> Guest? {
        guard let present = guests[session]?.guest, present.sequence == sequence else { return nil }
        guests[session] = nil
        return present
    }

    /// Notes that there may be something new to lease.
    mutating func news() {
        if isClaiming { hasNews = true }
        for (session, entry) in guests where entry.place == .waiting && entry.guest.takesWork {
            guests[session]?.place = .fresh
        }
    }

    /// Begins a claim, and returns its guests; empty when there are none, or when a claim is running.
    mutating func beginClaim() -> [Guest] {
        guard !isClaiming else { return [] }
        let fresh = guests.values.filter { $0.place == .fresh }.map { $0.guest }.sorted { $0.session < $1.session }
        guard !fresh.isEmpty else { return [] }
        isClaiming = true
        hasNews = false
        for guest in fresh { guests[guest.session]?.place = .inClaim }
        return fresh
    }

    /// Ends the claim. Guests that were granted leases or have to be told something, or whose time is up, leave and are returned.
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

    /// Removes and returns the guests that have waited long enough.
    mutating func expire(now: Int64) -> [Guest] {
        let late = guests.values.filter { $0.place == .waiting && $0.guest.deadline <= now }.map { $0.guest }
        for guest in late { guests[guest.session] = nil }
        return late
    }

    /// Removes and returns the guests of these sessions that wait: there is something to tell them. A guest that is in a
    /// claim leaves with the claim.
    mutating func dismiss(_ sessions: Set<SessionID>) -> [Guest] {
        let told = guests.values.filter { $0.place != .inClaim && sessions.contains($0.guest.session) }.map { $0.guest }
        for guest in told { guests[guest.session] = nil }
        return told
    }

    /// Removes and returns all guests.
    mutating func close() -> [Guest] {
        defer { guests.removeAll() }
        return guests.values.map { $0.guest }
    }
}
