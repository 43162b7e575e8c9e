import MusterAPI
import MusterCore
import MusterStore

/// The facts that explain a group, at one moment of the database's clock. `GroupExplanation` draws the conclusions. Counts
/// stop at a bound, so that the query costs the same for every size of a group.
struct GroupFacts: Sendable {
    /// How many chunks there are, counted up to a bound.
    struct Count: Sendable, Hashable {
        /// The chunks that were counted.
        var number: Int64
        /// Whether there are more.
        var more: Bool
    }

    /// When the group may run at all.
    enum Window: Sendable, Hashable {
        /// Always.
        case always
        /// Now, and until the moment.
        case open(until: Timestamp)
        /// Not now; from the moment on again.
        case closed(until: Timestamp?)
    }

    /// The group.
    var group: GroupDocument
    /// What is known of its chunks, its origins and its failures.
    var situation: GroupSituation
    /// Whether the whole group is paused.
    var isPaused = false
    /// The groups that it still waits for.
    var prerequisites: [PrerequisiteRecord] = []
    /// When the group may run.
    var window = Window.always
    /// The most bytes per second that it may have now.
    var bytesPerSecondAllowed: Int64?
    /// The workers that could do the work.
    var workers: SinkWorkers

    /// Tasks that are not finished.
    var unfinished: Int64 {
        group.tasks.queued + group.tasks.active + group.tasks.paused + group.tasks.finalizing
    }

    /// The bytes left to fetch, as far as sizes are known.
    var rest: Int64 { max(0, group.bytes.total - group.bytes.done) }

    /// Chunks that wait: for their next try, which is not due yet, or for another task's file.
    var putOff: Count {
        Count(counted: situation.putOff.fetching + situation.putOff.finalizing + situation.putOff.awaiting)
    }

    /// Whether there are more origins than were read.
    var hasMoreOrigins: Bool { Int64(situation.origins.count) >= GroupSituation.most }

    /// The lease that will end last at the current speeds, among those that fetch.
    var straggler: GroupSituation.Straggler? { situation.stragglers.first { $0.kind == .fetch && !$0.origin.isEmpty } }

    /// Whether most of an allowed rate is used: below that, something else limits the speed.
    static func isUsedUp(_ allowed: Int64, by speed: Int64) -> Bool {
        speed >= allowed - allowed / 10 || comesInLumps(allowed)
    }

    /// Whether a rate is so small that a single read takes longer than speeds are remembered. Such a rate counts as used up
    /// at every measured speed.
    static func comesInLumps(_ allowed: Int64) -> Bool { allowed < lumpBytes / rememberedSeconds }

    /// The bytes that are read from a connection at once.
    private static let lumpBytes: Int64 = 16 << 10
    /// How long a speed is remembered, in seconds (`bytes_per_second`).
    private static let rememberedSeconds: Int64 = 10
}

extension GroupFacts {
    /// The facts as they are stored.
    ///
    /// - Parameters:
    ///   - situation: what is known besides the group's row; `nil` if only the row was read.
    ///   - own: what the coordinator's own process knows.
    init(_ group: GroupRecord, _ situation: GroupSituation? = nil, own: OwnProcess) throws {
        self.init(
            group: try GroupDocument(group, etaSeconds: nil, own: own),
            situation: situation ?? GroupSituation(at: group.at), isPaused: group.isPaused,
            prerequisites: group.prerequisites.filter { !$0.isSatisfied }, window: Window(group),
            bytesPerSecondAllowed: group.bytesPerSecondAllowed,
            workers: SinkWorkers(group, situation?.workers, own: own))
    }
}

extension GroupFacts.Window {
    /// When a group may run.
    init(_ group: GroupRecord) {
        self =
            if !group.isWindowOpen {
                .closed(until: group.windowOpensAt)
            } else if let end = group.windowClosesAt {
                .open(until: end)
            } else {
                .always
            }
    }
}

extension GroupFacts.Count {
    /// A count that the store ended at one above its bound.
    init(counted: Int64) {
        self.init(number: min(counted, GroupSituation.most), more: counted > GroupSituation.most)
    }
}

extension GroupSituation.Origin {
    /// The group's chunks that could be leased on it now.
    var ready: GroupFacts.Count { GroupFacts.Count(counted: readyChunks) }
}
