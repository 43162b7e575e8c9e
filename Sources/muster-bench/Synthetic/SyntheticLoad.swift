import MusterAPI
import MusterCore

/// Tasks of one chunk each that no worker really fetches.
struct SyntheticLoad: Sendable {
    /// The most lines that one request adds.
    private static let sliceLines = 100_000

    /// The client that adds the tasks.
    let client: MusterClient
    /// The number of origins over which the URLs are spread in turns.
    var origins = 1
    /// Bytes of each file.
    var size: Int64 = 16 << 10

    /// A line of a manifest.
    func line(_ index: Int, of group: String) -> String {
        "{\"urls\":[\"\(url(index, of: group))\"],\"path\":\"\(group)/\(index)\",\"size\":\(size)}\n"
    }

    /// A task.
    func task(_ index: Int, of group: String) -> TaskRequest {
        TaskRequest(urls: [url(index, of: group)], path: "\(group)/\(index)", size: size)
    }

    private func url(_ index: Int, of group: String) -> String {
        "http://127.0.0.1:\(1 + index % max(origins, 1))/\(group)/\(index)"
    }

    /// Makes a sealed group by streamed additions of at most `sliceLines` lines each.
    func fill(_ group: String, count: Int) async throws {
        var policy = TransferPolicy()
        policy.reuse = false
        _ = try await client.createGroup(GroupRequest(name: group, policy: policy))
        for first in stride(from: 0, to: count, by: Self.sliceLines) {
            try await add(first..<min(first + Self.sliceLines, count), to: group)
        }
        _ = try await client.apply(.seal, to: group)
    }

    private func add(_ lines: Range<Int>, to group: String) async throws {
        let (stream, continuation) = AsyncThrowingStream<[UInt8], any Error>.makeStream()
        for first in stride(from: lines.lowerBound, to: lines.upperBound, by: 1_000) {
            let piece = first..<min(first + 1_000, lines.upperBound)
            continuation.yield(Array(piece.map { line($0, of: group) }.joined().utf8))
        }
        continuation.finish()
        let added = try await client.addTasks(streaming: { stream }, to: group)
        guard added.added == Int64(lines.count) else { throw BenchFailure("not all tasks were added to \(group)") }
    }

    /// Makes a sealed group with its tasks in one request.
    func create(_ group: String, count: Int) async throws {
        var policy = TransferPolicy()
        policy.reuse = false
        _ = try await client.createGroup(
            GroupRequest(
                name: group, sealed: true, tasks: (0..<count).map { task($0, of: group) }, policy: policy))
    }

    /// Makes many sealed groups, some at a time.
    func create(_ names: [String], count: Int, atOnce: Int = 4) async throws {
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            for (index, name) in names.enumerated() {
                if index >= atOnce { try await tasks.next() }
                tasks.addTask { try await create(name, count: count) }
            }
            try await tasks.waitForAll()
        }
    }
}
