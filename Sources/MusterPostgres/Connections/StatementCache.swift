/// Which statements a connection has prepared, by text and bind types; bounded, the least recently used is evicted first.
///
/// A statement is prepared when it is used the second time: preparing costs a round trip, which would be wasted on a
/// statement that is never used again.
struct StatementCache {
    struct Key: Hashable {
        var text: String
        var types: [PostgresType]
    }

    enum Plan: Equatable {
        /// Send text and binds together, unprepared.
        case unprepared
        /// Prepare under this name first.
        case prepare(name: String)
        /// It is prepared under this name.
        case prepared(name: String)
    }

    private enum Entry {
        /// It was used once; exits to `prepared` by `didPrepare`.
        case seen(lastUse: UInt64)
        /// The server knows it under this name; exits by `forget` or by being evicted.
        case prepared(name: String, lastUse: UInt64)

        var lastUse: UInt64 {
            switch self {
            case .seen(let lastUse), .prepared(_, let lastUse): lastUse
            }
        }
    }

    private let limit: Int
    private var entries: [Key: Entry] = [:]
    private var uses: UInt64 = 0
    private var names: UInt64 = 0
    /// Statements that the server still holds, but that will not be used any more.
    private(set) var discarded: [String] = []

    init(limit: Int) {
        self.limit = max(0, limit)
    }

    var count: Int { entries.count }

    /// What to do for a statement that is to be run now.
    mutating func plan(for key: Key) -> Plan {
        guard limit > 0 else { return .unprepared }
        uses += 1
        switch entries[key] {
        case .none:
            if entries.count >= limit {
                evict()
            }
            entries[key] = .seen(lastUse: uses)
            return .unprepared
        case .seen:
            names += 1
            entries[key] = .seen(lastUse: uses)
            return .prepare(name: "muster_\(names)")
        case .prepared(let name, _):
            entries[key] = .prepared(name: name, lastUse: uses)
            return .prepared(name: name)
        }
    }

    /// Notes that the server has prepared a statement.
    mutating func didPrepare(_ key: Key, name: String) {
        entries[key] = .prepared(name: name, lastUse: uses)
    }

    /// Notes that the server can no longer run a statement; `stillThere` says whether it still holds the name.
    mutating func forget(_ key: Key, stillThere: Bool) {
        if case .prepared(let name, _) = entries.removeValue(forKey: key), stillThere {
            discarded.append(name)
        }
    }

    /// Returns the names that the caller will deallocate, and no longer counts them.
    mutating func takeDiscarded() -> [String] {
        defer { discarded = [] }
        return discarded
    }

    private mutating func evict() {
        // Linear, but it happens only when a connection sees more statements than the limit, which is meant to be rare.
        guard let oldest = entries.min(by: { $0.value.lastUse < $1.value.lastUse })?.key else { return }
        forget(oldest, stillThere: true)
    }
}
