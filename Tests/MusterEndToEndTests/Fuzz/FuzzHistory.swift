import MusterAPI
import MusterTestSupport

/// One history of the fuzz test: a task, what its origins do with the requests for it, and what its file may be in the end.
///
/// Everything follows from the random generator that it was made with.
struct FuzzHistory: Sendable {
    /// What shows Muster that bytes are wrong, besides validators. An origin that lies about validators is only played with such a witness:
    /// without one, no client could notice.
    enum Witness: CaseIterable, Sendable {
        /// Nothing.
        case none
        /// The caller names the size.
        case size
        /// The caller names a digest.
        case digest
    }

    /// The task.
    let task: TaskRequest
    /// SHA-256 of every content that its file may have if it succeeds.
    let right: Set<String>
    /// What was played, for the report of a failure.
    let script: String

    /// Makes the history of this number and has the origins play it.
    init(number: Int, origins: [ScriptedOrigin], using random: inout SeededGenerator) {
        let witness = Witness.allCases.randomElement(using: &random) ?? .none
        let name = "h\(number)"
        let size = Self.size(using: &random)
        let content = ScriptedOrigin.Content.seeded(seed: random.next(), size: size)
        var contents = [content]
        var script = ["\(witness) \(size) bytes"]
        var urls: [String] = []
        for source in 0..<Self.sources(using: &random) {
            guard let origin = origins.randomElement(using: &random) else { break }
            let path = "/\(name)-\(source)"
            var own = content
            var etag: String?
            if source > 0 {
                // A mirror serves the same, or the same bytes under another ETag, or other bytes altogether (row 30).
                switch Int.random(in: 0..<4, using: &random) {
                case 0:
                    own = .seeded(seed: random.next(), size: size)
                    contents.append(own)
                case 1: etag = "\"mirror-\(source)\""
                default: break
                }
            }
            origin.serve(path, .init(own, etag: etag))
            let deeds = FuzzDeeds.choose(for: own, witness, using: &random)
            for deed in deeds.played { origin.misbehave(path, deed.misbehaviour, when: deed.condition) }
            contents += deeds.contents
            script.append("\(path) etag=\(etag ?? "own"): \(deeds.played.map { "\($0)" })")
            urls.append(origin.url(path))
        }
        let isDigest = witness == .digest
        task = TaskRequest(
            urls: urls, path: name, size: witness == .size ? size : nil,
            digests: isDigest ? ["sha256": content.sha256()] : nil)
        right = Set(
            (isDigest ? [content] : contents).filter { witness != .size || $0.size == size }.map { $0.sha256() })
        self.script = script.joined(separator: "; ")
    }

    /// Empty, small, about as large as one chunk (1 MiB), or of several.
    private static func size(using random: inout SeededGenerator) -> Int64 {
        switch Int.random(in: 0..<20, using: &random) {
        case 0: 0
        case 1...11: .random(in: 1...20_000, using: &random)
        case 12...14: .mebibytes(1) + .random(in: -2...2, using: &random)
        default: .random(in: 1_000_000...3_500_000, using: &random)
        }
    }

    private static func sources(using random: inout SeededGenerator) -> Int {
        Int.random(in: 0..<5, using: &random) == 0 ? Int.random(in: 2...3, using: &random) : 1
    }
}
