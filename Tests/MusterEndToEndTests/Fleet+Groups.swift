import FoundationEssentials
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

/// A wanted file, with the digest that it must have.
struct WantedFile: Sendable {
    /// Its key and its path in the sink.
    let path: String
    /// Where it is fetched from.
    let url: String
    /// The SHA-256 of its bytes.
    let sha256: String

    /// The task that fetches it.
    var task: TaskRequest { TaskRequest(urls: [url], path: path) }
}

extension ScriptedOrigin {
    /// Serves pseudo-random files `<prefix>0`, `<prefix>1`, … of these sizes.
    func serveFiles(_ prefix: String, sizes: [Int64], seed: UInt64 = 1) -> [WantedFile] {
        sizes.enumerated().map { index, size in
            serveFile("\(prefix)\(index)", size: size, seed: seed &+ UInt64(index) &* 1_000_003)
        }
    }

    /// Serves a pseudo-random file.
    func serveFile(_ name: String, size: Int64, seed: UInt64 = 1) -> WantedFile {
        let content = Content.seeded(seed: seed, size: size)
        serve("/\(name)", File(content))
        return WantedFile(path: name, url: url("/\(name)"), sha256: content.sha256())
    }
}

extension Fleet {
    /// Submits a sealed group.
    func submit(_ group: String, _ files: [WantedFile]) async throws {
        _ = try await client().createGroup(GroupRequest(name: group, sealed: true, tasks: files.map(\.task)))
    }

    /// Asks until a coordinator answers: some of them may be dead just now.
    func persistently<Answer: Sendable>(
        limit: Duration = .seconds(60),
        _ ask: (MusterClient) async throws -> Answer
    ) async throws -> Answer {
        let client = client()
        return try await eventually("an answer of a coordinator", limit: limit) {
            do {
                return try await ask(client)
            } catch is Unreachable {
                return nil
            } catch let problem as Problem where problem.status == 503 {
                return nil
            }
        }
    }

    /// Waits for the event that ends a generation of a group, and returns the group.
    @discardableResult
    func waitForEnd(
        of group: String,
        generation: Int32 = 1,
        limit: Duration = .seconds(120)
    ) async throws -> GroupDocument {
        let deadline = ContinuousClock.now + limit
        var position: Int64 = 0
        while ContinuousClock.now < deadline {
            let after = position
            let page = try await persistently { try await $0.events(after: after, group: group, wait: .seconds(5)) }
            position = max(position, page.next)
            for event in page.items {
                if let ending = Ending(event), ending.generation == generation {
                    return try await persistently { try await $0.group(group) }
                }
            }
        }
        let document = try? await client().group(group)
        throw Unexpected("the group \(group) has not ended after \(limit): \(document.map { "\($0)" } ?? "no answer")")
    }

    /// Waits until so many bytes of a task are durable.
    func waitUntilDurable(_ bytes: Int64, of key: String, in group: String) async throws {
        try await eventually("\(bytes) durable bytes of \(key)") {
            try await self.persistently { try await $0.task(key, of: group) }.bytes.done >= bytes
        }
    }

    /// Waits until exactly these workers are alive.
    func waitForWorkers(_ names: Set<String>) async throws {
        try await eventually("the workers \(names)") {
            Set(try await self.persistently { try await $0.workers() }.items.map(\.name)) == names
        }
    }

    /// How a generation of a group ended, as an event tells it.
    struct Ending: Hashable, Sendable {
        let generation: Int32
        let state: GroupState

        init(generation: Int32, state: GroupState) {
            self.generation = generation
            self.state = state
        }

        init?(_ event: EventDocument) {
            // After a failover or a restore the ids end in a mark (adr/0022).
            let words = event.id.split(separator: "-")
            guard event.type.hasPrefix("dev.muster.group."), (4...5).contains(words.count),
                let generation = Int32(words[2]), let state = GroupState(rawValue: String(words[3])),
                state.isTerminal
            else { return nil }
            self.init(generation: generation, state: state)
        }
    }

    /// Every event of the log, after its positions were found to be contiguous (I9).
    func log() async throws -> [EventDocument] {
        var events: [EventDocument] = []
        while true {
            let after = events.last?.position ?? 0
            let page = try await persistently { try await $0.events(after: after, limit: 1_000) }
            if page.items.isEmpty { break }
            events += page.items
        }
        #expect(events.map(\.position) == (0..<events.count).map { Int64($0) + 1 })
        #expect(Set(events.map(\.id)).count == events.count)
        return events
    }

    /// The oracle: the files are what the origin has (I8), no part or copy of them is left, and each generation has ended exactly once
    /// (I7), in these states.
    func check(_ group: String, _ files: [WantedFile], endings: [GroupState] = [.succeeded]) async throws {
        for file in files {
            #expect(try FileDigest.sha256(sink.appending(file.path)) == file.sha256, "\(file.path)")
        }
        try await waitForNoParts()
        // The end of a group is visible a moment before its event has a position.
        let events = try await eventually("\(endings.count) endings of \(group)") {
            let events = try await log().filter { $0.subject == "groups/\(group)" }
            return events.count { Ending($0) != nil } >= endings.count ? events : nil
        }
        let expected = endings.enumerated().map { Ending(generation: Int32($0) + 1, state: $1) }
        #expect(events.compactMap { Ending($0) } == expected)
        let successes = events.filter { $0.type == "dev.muster.task.succeeded.v1" }.compactMap(\.key)
        #expect(Set(successes).isSuperset(of: files.map(\.path)))
        #expect(Set(successes).count == successes.count)
    }

    /// Waits until no part and no copy is left in the sink; they are purged by workers, after the fact.
    func waitForNoParts() async throws {
        try await eventually("the end of the parts, of which there are \(parts())", limit: .seconds(30)) {
            self.parts().isEmpty
        }
    }

    /// The parts in the sink, and the files that a session is about to put in place or to delete.
    nonisolated func parts() -> [String] { Self.parts(below: sink) }

    /// The same for any sink.
    static func parts(below sink: FilePath) -> [String] {
        func names(_ path: FilePath) -> [String] {
            (try? FileManager.default.contentsOfDirectory(atPath: path.string)) ?? []
        }
        let own = sink.appending(".muster")
        // Each installation has a directory, in it one for the parts and one for each session.
        return names(own).filter { UUID(uuidString: $0) != nil }.flatMap { installation in
            names(own.appending(installation)).flatMap { names(own.appending(installation).appending($0)) }
        }
    }
}

extension EventDocument {
    /// The key of the task that the event is about.
    var key: String? {
        guard case .object(let fields) = data, case .string(let key)? = fields["key"] else { return nil }
        return key
    }
}

extension ScriptedOrigin.Request {
    /// The first byte that was asked for.
    var start: Int64 {
        guard let range, let text = range.split(separator: "=").last?.split(separator: "-").first else { return 0 }
        return Int64(text) ?? 0
    }
}
