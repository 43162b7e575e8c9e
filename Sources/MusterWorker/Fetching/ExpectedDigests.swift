import MusterCore

/// The digests that a whole file must have, by the side that states them (range contract, row 35).
struct ExpectedDigests: Sendable, Hashable {
    /// What the caller expects.
    let given: [ContentDigest]
    /// What the origin stated of this content version.
    let stated: [ContentDigest]

    /// Digests by algorithm, in hexadecimal; unknown algorithms and malformed values are left out.
    init(given: [String: String], stated: [String: String]?) {
        self.given = Self.digests(given)
        self.stated = Self.digests(stated ?? [:])
    }

    /// All digests, each once. Two different digests of one algorithm both stay: one of them will mismatch.
    var all: [ContentDigest] { given + stated.filter { !given.contains($0) } }

    /// Whether a digest that the caller gave tells different contents apart.
    var tellsContentsApart: Bool { given.contains { $0.algorithm.tellsContentsApart } }

    /// The message about a mismatch: whether the caller or the origin is contradicted, and both values.
    func mismatch(expected: ContentDigest, found: ContentDigest) -> String {
        let name = expected.algorithm.rawValue
        let whose = given.contains(expected) ? "the caller expects" : "the origin states"
        return "\(whose) \(name) \(expected.hexadecimal), the bytes have \(found.hexadecimal)"
    }

    private static func digests(_ values: [String: String]) -> [ContentDigest] {
        values.sorted { $0.key < $1.key }.compactMap { name, value in
            DigestAlgorithm(rawValue: name).flatMap { ContentDigest(algorithm: $0, hexadecimal: value) }
        }
    }
}
