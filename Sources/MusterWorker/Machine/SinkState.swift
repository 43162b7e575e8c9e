import MusterAPI
import MusterCore

/// One of the worker's sinks, with its health.
struct SinkState: Sendable {
    /// The health of a sink.
    enum Health: Sendable, Hashable {
        /// It can be written. `probes` is the backoff that it had before `since`. Exits: `parked`.
        case well(probes: Int, since: Int64)
        /// This worker takes no leases of it, but purges if it is full; it is tried again at `probeAt`. Exits: `probing`.
        case parked(SinkTrouble, probes: Int, probeAt: Int64)
        /// It is being tried. Exits: `well`, `parked`.
        case probing(SinkTrouble, probes: Int)
    }

    /// The checks of a healthy sink of which this worker has no leases: trouble is reported before a task meets it.
    enum Watch: Sendable, Hashable {
        /// No check is planned.
        case none
        /// A check is due at that time.
        case due(at: Int64)
        /// A check is under way.
        case looking
    }

    let name: String
    var health: Health
    var watch = Watch.none
    var freeBytes: Int64?
    /// How many sessions were given up because calls to the sink hung too long.
    var hangs = 0

    /// A sink as it was found at the start: one in trouble is tried at once.
    init(_ status: SinkStatus) {
        name = status.name
        freeBytes = status.freeBytes
        if let kind = status.parked {
            health = .parked(SinkTrouble(kind: kind, detail: status.detail ?? ""), probes: 0, probeAt: .min)
        } else {
            health = .well(probes: 0, since: .min)
        }
    }

    /// Whether leases of this kind can be worked on: in a full sink files can still be deleted, which makes room.
    func takes(_ kind: LeaseKind) -> Bool {
        switch health {
        case .well: true
        case .parked(let trouble, _, _), .probing(let trouble, _): kind == .purge && trouble.kind == .storageFull
        }
    }

    /// When it is tried again or checked next; `nil` if neither is planned.
    var probeDeadline: Int64? {
        switch (health, watch) {
        case (.parked(_, _, let probeAt), _): probeAt
        case (.well, .due(let moment)): moment
        case (.well, .none), (.well, .looking), (.probing, _): nil
        }
    }

    /// What a sync says of it.
    var status: SinkStatus {
        switch health {
        case .well: SinkStatus(name: name, freeBytes: freeBytes)
        case .parked(let trouble, _, _), .probing(let trouble, _):
            SinkStatus(name: name, parked: trouble.kind, detail: trouble.detail, freeBytes: freeBytes)
        }
    }
}
