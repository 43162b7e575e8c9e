import MusterCore

/// The digests that a whole file must have, and who says so (range contract, row 35).
struct ExpectedDigests: Sendable, Hashable {
    /// What the caller expects.
    let given: [ContentDigest]
    /// What the origin stated of this content version.
    let stated: [ContentDigest]

    /// Digests by algorithm, in hexadecimal; what is none is left out.
    init(given: [String: String], stated: [String: String]?) {
        self.given = Self.digests(given)
        self.stated = Self.digests(stated ?? [:])
    }

    /// All of them, each once. Two of one algorithm that differ stay both: one of them will be found wrong.
    var all: [ContentDigest] { given + stated.filter { !given.contains($0) } }

    /// Whether what the caller gave tells bytes of other contents apart.
    var tellsContentsApart: Bool { given.contains { $0.algorithm.tellsContentsApart } }

    /// What is said of a mismatch: who is contradicted, and both values.
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
