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
    func stage(_ requests: [TaskRequest], pointer: String) async throws -> Upload? {
        guard !requests.isEmpty else { return nil }
        var staged: [StagedTask] = []
        for (index, request) in requests.enumerated() {
            do {
                staged.append(try Self.staged(try request.validated(), line: index + 1))
            } catch let refusal as InputRefusal {
                throw refusal.within("\(pointer)/\(index)")
            }
        }
        var upload = try await store.beginUpload()
        do {
            for start in stride(from: 0, to: staged.count, by: Self.batch) {
                try await store.stage(Array(staged[start..<min(start + Self.batch, staged.count)]), upload: &upload)
            }
        } catch {
            await drop(upload)
            throw error
        }
        return upload
    }

    /// Stages NDJSON as it comes. The stream's reader waits while a batch is written, and so does the sender.
    func stage(lines body: RequestBody) async throws -> Upload? {
        var upload = try await store.beginUpload()
        do {
            var parser = ManifestParser(form: .tasks)
            var waiting: [StagedTask] = []
            for try await buffer in body {
                waiting += try Self.staged(try parser.parse(buffer.readableBytesView))
                guard waiting.count >= Self.batch else { continue }
                try await store.stage(waiting, upload: &upload)
                waiting.removeAll(keepingCapacity: true)
            }
            waiting += try Self.staged(try parser.finish())
            try await store.stage(waiting, upload: &upload)
        } catch {
            await drop(upload)
            throw error
        }
        return upload.count > 0 ? upload : nil
    }

    /// Does what the upload is for; it is dropped when that fails.
    func finish<Answer>(_ upload: Upload?, _ body: () async throws -> Answer) async throws -> Answer {
        do {
            return try await body()
        } catch {
            if let upload { await drop(upload) }
            throw error
        }
    }

    /// What can't be dropped now is swept later: nobody sees it.
    private func drop(_ upload: Upload) async {
        try? await store.abandon(upload)
    }

    private static func staged(_ entries: [ManifestParser.Entry]) throws -> [StagedTask] {
        try entries.map { try staged($0.task, line: $0.line) }
    }

    private static func staged(_ task: TaskSpecification, line: Int) throws -> StagedTask {
        let digests = Dictionary(uniqueKeysWithValues: task.digests.map { ($0.algorithm.rawValue, $0.hexadecimal) })
        return StagedTask(
            line: Int64(line), task: task, digests: try StoredJSON.text(digests.isEmpty ? nil : digests),
            metadata: try StoredJSON.text(task.metadata),
            headers: try StoredJSON.text(task.headers.isEmpty ? nil : task.headers))
    }
}
