import MusterAPI
import MusterCore
import MusterTestSupport

/// A row of the range contract (`docs/range-contract.md`), as it is played over a real socket and judged through the whole of Muster.
struct Row: Sendable {
    /// Its number in the table.
    let number: Int
    /// What the origin does.
    let title: String
    /// The transports over which it can be played.
    var transports: [ScriptedOrigin.Transport] = ScriptedOrigin.Transport.allCases
    /// What the fleet has to know of the origin for this row.
    var acquaintance = Acquaintance.any
    /// Makes an origin of its own play the row.
    let play: @Sendable (Stage) async throws -> Play

    /// A row that can be played over every transport unless some are given.
    init(
        _ number: Int, _ title: String, on transports: [ScriptedOrigin.Transport] = ScriptedOrigin.Transport.allCases,
        of acquaintance: Acquaintance = .any, play: @escaping @Sendable (Stage) async throws -> Play
    ) {
        self.acquaintance = acquaintance
        self.number = number
        self.title = title
        self.transports = transports
        self.play = play
    }

    /// Whether an origin is known to serve a file more than once (adr/0027).
    enum Acquaintance: Sendable {
        /// It is known, so that the first request is for a chunk.
        case known
        /// It is not known, so that the first request is for all of the file.
        case unknown
        /// The row ends alike in both cases.
        case any
    }

    /// The stage of one row: an origin that no other row uses.
    struct Stage: Sendable {
        /// The origin.
        let origin: ScriptedOrigin
        /// The options without which the transport can't be reached.
        let base: FetchOptions
        /// The path of the file.
        let path = "/file"
        /// Three chunks and a bit more.
        static let size = Int64.mebibytes(3) + 77

        /// Serves a file and returns the play that fetches it.
        func file(
            size: Int64 = Stage.size, seed: UInt64 = 7, etag: String? = nil,
            headers: [ScriptedOrigin.Header] = [],
            _ misbehaviours: (ScriptedOrigin.Misbehaviour, ScriptedOrigin.Condition)...
        ) -> Play {
            let content = ScriptedOrigin.Content.seeded(seed: seed, size: size)
            origin.serve(path, .init(content, etag: etag, headers: headers))
            for (misbehaviour, condition) in misbehaviours { origin.misbehave(path, misbehaviour, when: condition) }
            var play = Play(url: origin.url(path), expecting: .bytes([content.sha256()]), origin: origin)
            play.fetch = base
            return play
        }
    }

    /// The request, and how it has to end.
    struct Play: Sendable {
        /// How a task may end.
        enum Expectation: Sendable, Hashable {
            /// With a file of one of these SHA-256.
            case bytes(Set<String>)
            /// With one of these failures, and no file.
            case failure(Set<FailureKind>)
        }

        /// The task; its path is set to the row's own.
        var task: TaskRequest
        /// How the sources are asked.
        var fetch = FetchOptions()
        /// The group's transfer policy.
        var policy = TransferPolicy()
        /// The resolver that knows fresh URLs.
        var resolver: Resolver?
        /// How it has to end.
        var expected: Expectation
        /// The origin.
        let origin: ScriptedOrigin
        /// What else has to be true when it has ended.
        var check: @Sendable (TaskDocument, [ScriptedOrigin.Request]) async throws -> Void = { _, _ in }

        /// A task of one URL.
        init(url: String, expecting expected: Expectation, origin: ScriptedOrigin) {
            task = TaskRequest(urls: [url])
            self.expected = expected
            self.origin = origin
        }

        /// The same, expected to end with one of these failures.
        func failing(_ kinds: FailureKind...) -> Play {
            var play = self
            play.expected = .failure(Set(kinds))
            return play
        }

        /// The same with something changed.
        func with(_ change: (inout Play) -> Void) -> Play {
            var play = self
            change(&play)
            return play
        }

        /// The same with short time limits, for an origin that falls silent.
        func impatient() -> Play {
            with {
                $0.fetch.connectTimeoutSeconds = 2
                $0.fetch.firstByteTimeoutSeconds = 1
                $0.fetch.lowSpeedSeconds = 1
            }
        }

        /// The same with a check of the requests that the origin saw.
        func checking(
            _ check: @escaping @Sendable (TaskDocument, [ScriptedOrigin.Request]) async throws -> Void
        ) -> Play {
            var play = self
            play.check = check
            return play
        }
    }
}
