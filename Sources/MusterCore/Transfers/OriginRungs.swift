/// Which rungs an origin as a whole has contradicted (`docs/range-contract.md`, "The ladder"); without I/O or a clock.
///
/// One coded object must not switch off ranges for a whole store. A rung is skipped for an origin only after three of its paths have
/// contradicted it and none has been served on it, and only for ten minutes.
public struct OriginRungs: Sendable {
    private struct Entry {
        var paths: Set<String> = []
        /// The time from which the rung is tried again; `nil` while it is still tried.
        var closedUntil: Int64?
        /// Whether the path that was recorded last was served on the rung.
        var isServed = false
    }

    /// How many paths have to contradict a rung to close it.
    public static let pathsToClose = 3
    /// How long it stays closed.
    public static let closedNanoseconds: Int64 = 600 * 1_000_000_000
    /// How many origins are remembered. A forgotten origin is learned again from its answers.
    public static let originLimit = 1_024

    private var entries: [String: [Rung: Entry]] = [:]

    /// Starts without knowledge of any origin.
    public init() {}

    /// Records that a path has contradicted a rung, at a moment in nanoseconds.
    public mutating func contradicted(_ rung: Rung, by path: String, of origin: String, now: Int64) {
        guard rung != .whole else { return }
        makeRoom(for: origin)
        var entry = entries[origin]?[rung] ?? Entry()
        if let until = entry.closedUntil, until <= now { entry = Entry() }
        entry.isServed = false
        entry.paths.insert(path)
        if entry.paths.count >= Self.pathsToClose {
            entry = Entry(closedUntil: now + Self.closedNanoseconds)
        }
        entries[origin, default: [:]][rung] = entry
    }

    /// Records that a path was served on a rung.
    public mutating func served(_ rung: Rung, by origin: String) {
        guard entries[origin]?[rung]?.isServed != true else { return }
        makeRoom(for: origin)
        entries[origin, default: [:]][rung] = Entry(isServed: true)
    }

    private mutating func makeRoom(for origin: String) {
        if entries[origin] == nil, entries.count >= Self.originLimit { entries.removeAll() }
    }

    /// The rung on which a source of the origin begins if nothing is known about the source.
    ///
    /// - Parameter isToldToWait: whether requests for its ranges have waited as the source asked, without success. The source is then asked
    ///   plainly, unless the origin was seen to serve ranges.
    public func first(of origin: String, isToldToWait: Bool = false, now: Int64) -> Rung {
        guard let known = entries[origin] else { return isToldToWait ? .whole : .chunks }
        if isToldToWait, known[.chunks]?.isServed != true, known[.stream]?.isServed != true { return .whole }
        return Rung.allCases.first { known[$0]?.closedUntil.map { $0 <= now } ?? true } ?? .whole
    }
}
