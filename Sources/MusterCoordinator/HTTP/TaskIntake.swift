import FoundationEssentials
import Hummingbird
import MusterAPI
import MusterCore
import MusterStore

/// Takes tasks in: checks each one, stages them, and leaves nothing behind when one is bad.
struct TaskIntake: Sendable {
    let store: Store
    let metrics: CoordinatorMetrics

    /// Stages the tasks of a document; `pointer` is their place in it, `policy` the policy of their group. Returns `nil` if
    /// there are no tasks.
    func stage(_ requests: [TaskRequest], pointer: String, policy: TransferPolicy?) async throws -> Upload? {
        guard !requests.isEmpty else { return nil }
        var staged: [StagedTask] = []
        for (index, request) in requests.enumerated() {
            do {
                let task = try request.validated()
                try Self.check(task, policy)
                staged.append(try Self.staged(task, request.fetch, line: index + 1))
            } catch let refusal as InputRefusal {
                throw refusal.within("\(pointer)/\(index)")
            }
        }
        var upload = try await store.beginUpload()
        do {
            try await store.stage(staged, upload: &upload)
        } catch {
            await drop(upload)
            throw error
        }
        return upload
    }

    /// Stages NDJSON as it comes. The stream's reader waits while a batch is written, and so does the sender.
    func stage(lines body: RequestBody, policy: TransferPolicy?) async throws -> Upload? {
        var upload = try await store.beginUpload()
        do {
            var parser = ManifestParser(form: .tasks)
            for try await buffer in body {
                let tasks = try Self.staged(try parser.parse(buffer.readableBytesView), policy)
                try await store.stage(tasks, upload: &upload)
            }
            try await store.stage(try Self.staged(try parser.finish(), policy), upload: &upload)
        } catch {
            await drop(upload)
            throw error
        }
        return upload.count > 0 ? upload : nil
    }

    /// Runs `body`, which uses the upload; the upload is dropped when that fails.
    func finish<Answer>(_ upload: Upload?, _ body: () async throws -> Answer) async throws -> Answer {
        do {
            return try await body()
        } catch {
            if let upload { await drop(upload) }
            throw error
        }
    }

    /// An upload that can't be dropped now is swept later: it is not visible until then.
    private func drop(_ upload: Upload) async {
        try? await store.abandon(upload)
    }

    /// Checks what the group's policy demands of a task. Where validators are not compared, only digests can tell in the
    /// end whether contents are the same (range contract, row 11).
    private static func check(_ task: TaskSpecification, _ policy: TransferPolicy?) throws(InputRefusal) {
        guard policy?.validators == .sizeAndDigest, task.digests.isEmpty else { return }
        throw InputRefusal(
            pointer: "/digests", reason: "is missing: the group's policy \"sizeAndDigest\" needs a digest of every task"
        )
    }

    private static func staged(
        _ entries: [ManifestParser.Entry], _ policy: TransferPolicy?
    ) throws -> [StagedTask] {
        try entries.map { entry in
            do throws(InputRefusal) {
                try check(entry.task, policy)
            } catch {
                throw error.onLine(entry.line)
            }
            return try staged(entry.task, entry.fetch, line: entry.line)
        }
    }

    private static func staged(_ task: TaskSpecification, _ fetch: FetchOptions?, line: Int) throws -> StagedTask {
        let digests = Dictionary(uniqueKeysWithValues: task.digests.map { ($0.algorithm.rawValue, $0.hexadecimal) })
        return StagedTask(
            line: Int64(line), task: task, digests: try StoredJSON.text(digests.isEmpty ? nil : digests),
            metadata: try StoredJSON.text(task.metadata),
            headers: try StoredJSON.text(task.headers.isEmpty ? nil : task.headers),
            options: try StoredJSON.text(fetch))
    }
}
