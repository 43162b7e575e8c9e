import MusterTestSupport

/// The paths on which the processes of the storm reach each other.
struct StormLinks: Sendable {
    /// Between whom a path is.
    enum Kind: String, CaseIterable, Sendable {
        /// A coordinator and its database.
        case database
        /// The balancer and a coordinator.
        case coordinator
        /// A worker and the balancer.
        case worker
        /// Workers and an origin.
        case origin
    }

    let paths: [Kind: [DistantPath]]

    /// A random path of some kinds.
    func some(_ kinds: [Kind] = Kind.allCases, using random: inout SeededGenerator) throws -> DistantPath {
        let all = kinds.flatMap { paths[$0] ?? [] }
        guard let path = all.randomElement(using: &random) else { throw Unexpected("no path of \(kinds)") }
        return path
    }

    /// Ends all faults.
    func calm() async {
        for path in paths.values.joined() { await path.inject(nil) }
    }

    /// How many replies of the database were cut off.
    var lostReplies: Int { paths[.database]?.reduce(0) { $0 + $1.lostAnswers } ?? 0 }
}
