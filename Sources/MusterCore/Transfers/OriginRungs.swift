/// Which rungs an origin as a whole has contradicted (`docs/range-contract.md`, "The ladder"); without I/O or a clock.
///
/// One coded object must not switch off ranges for a whole store: a rung is left out for an origin only after three of its paths have
/// contradicted it and none has been served on it, for ten minutes.
public struct OriginRungs: Sendable {
    private struct Entry {
        var paths: Set<String> = []
        /// From when on the rung is tried again; `nil` while it is still tried.
        var closedUntil: Int64?
        /// Whether the last path that was told of was served on it.
        var isServed = false
    }

    /// How many paths close a rung.
    public static let pathsToClose = 3
    /// How long it stays closed.
    public static let closedNanoseconds: Int64 = 600 * 1_000_000_000
    /// How many origins are remembered; a forgotten one shows itself again.
    public static let originLimit = 1_024

    private var entries: [String: [Rung: Entry]] = [:]

    /// Nothing is known of any origin.
    public init() {}

    /// A path has contradicted a rung, at a moment in nanoseconds.
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

    /// A path was served on a rung.
    public mutating func served(_ rung: Rung, by origin: String) {
        guard entries[origin]?[rung]?.isServed != true else { return }
        makeRoom(for: origin)
        entries[origin, default: [:]][rung] = Entry(isServed: true)
    }

    private mutating func makeRoom(for origin: String) {
        if entries[origin] == nil, entries.count >= Self.originLimit { entries.removeAll() }
    }

    /// Where a source of the origin of which nothing is known begins.
    ///
    /// - Parameter isToldToWait: whether requests for its ranges have waited as they were told to, in vain. It is asked plainly then, unless the origin was
    ///   seen to serve ranges.
    public func first(of origin: String, isToldToWait: Bool = false, now: Int64) -> Rung {
        guard let known = entries[origin] else { return isToldToWait ? .whole : .chunks }
        if isToldToWait, known[.chunks]?.isServed != true, known[.stream]?.isServed != true { return .whole }
        return Rung.allCases.first { known[$0]?.closedUntil.map { $0 <= now } ?? true } ?? .whole
    }
}
