import FoundationEssentials
import Hummingbird
import MusterAPI
import MusterCore
import MusterStore

/// Takes tasks in: checks each one, stages them in batches, and leaves nothing behind when one is bad.
struct TaskIntake: Sendable {
    let store: Store
    let metrics: CoordinatorMetrics

    /// How many tasks are staged by one statement.
    private static let batch = 1_000

    /// Stages the tasks of a document; `pointer` is where they stand in it. Returns `nil` for none.
    func stage(_ requests: [TaskRequest], pointer: String) async throws -> Int64? {
        guard !requests.isEmpty else { return nil }
        var staged: [StagedTask] = []
        for (index, request) in requests.enumerated() {
            do {
                staged.append(try Self.staged(try request.validated(), line: index + 1))
            } catch let refusal as InputRefusal {
                throw refusal.within("\(pointer)/\(index)")
            }
        }
        let upload = try await store.beginUpload()
        return try await guarding(upload) {
            for start in stride(from: 0, to: staged.count, by: Self.batch) {
                try await store.stage(Array(staged[start..<min(start + Self.batch, staged.count)]), upload: upload)
            }
            return upload
        }
    }

    /// Stages NDJSON as it comes. The stream's reader waits while a batch is written, and so does the sender.
    func stage(lines body: RequestBody) async throws -> Int64? {
        let upload = try await store.beginUpload()
        return try await guarding(upload) {
            var parser = ManifestParser(form: .tasks)
            var waiting: [StagedTask] = []
            var count = 0
            func take(_ entries: [ManifestParser.Entry]) async throws {
                for entry in entries { waiting.append(try Self.staged(entry.task, line: entry.line)) }
                guard waiting.count >= Self.batch else { return }
                count += waiting.count
                try await store.stage(waiting, upload: upload)
                waiting.removeAll(keepingCapacity: true)
            }
            for try await buffer in body { try await take(try parser.parse(buffer.readableBytesView)) }
            try await take(try parser.finish())
            try await store.stage(waiting, upload: upload)
            return count + waiting.count > 0 ? upload : nil
        }
    }

    /// Does what the upload is for; it is dropped when that fails.
    func finish<Answer>(_ upload: Int64?, _ body: () async throws -> Answer) async throws -> Answer {
        guard let upload else { return try await body() }
        return try await guarding(upload, body)
    }

    private func guarding<Answer>(_ upload: Int64, _ body: () async throws -> Answer) async throws -> Answer {
        do {
            return try await body()
        } catch {
            // What can't be dropped now is swept later: nobody sees it.
            try? await store.abandon(upload: upload)
            throw error
        }
    }

    private static func staged(_ task: TaskSpecification, line: Int) throws -> StagedTask {
        let digests = Dictionary(uniqueKeysWithValues: task.digests.map { ($0.algorithm.rawValue, $0.hexadecimal) })
        return StagedTask(
            line: Int64(line), task: task, digests: try StoredJSON.text(digests.isEmpty ? nil : digests),
            metadata: try StoredJSON.text(task.metadata),
            headers: try StoredJSON.text(task.headers.isEmpty ? nil : task.headers))
    }
}
