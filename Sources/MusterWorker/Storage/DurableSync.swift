import Glibc
import Synchronization

/// Makes what was written to a sink durable, for many requests at once.
///
/// While one sync runs, further requests gather, and the next sync serves them all. When a request is answered,
/// everything written before it was made is on storage (I4).
final class DurableSync: Sendable {
    /// The least number of distinct files for which one `syncfs` is cheaper than a sync for each.
    static let filesForWholeSync = 4

    private enum Target {
        case part(PartFile)
        case directories([Directory])
        case everything
    }

    private struct Request {
        let target: Target
        let continuation: CheckedContinuation<Result<Void, StorageError>, Never>
    }

    private struct State {
        var gathering: [Request] = []
        var isRunning = false
    }

    private let sink: SinkDirectory
    private let pool: BlockingPool
    private let state = Mutex(State())

    /// Syncs of one sink, made on the threads of `pool`.
    init(sink: SinkDirectory, pool: BlockingPool) {
        self.sink = sink
        self.pool = pool
    }

    /// Makes durable everything that was written to `part` before the call, by any writer, and checks that the part still exists.
    ///
    /// - Throws: the failure of the sync, which sticks to the part; `partLost` when it was deleted or cut (F19).
    func makeDurable(_ part: PartFile) async throws(StorageError) {
        try await request(.part(part))
    }

    /// Makes the entries of `directories` durable.
    func makeDurable(_ directories: [Directory]) async throws(StorageError) {
        guard !directories.isEmpty else { return }
        try await request(.directories(directories))
    }

    /// Makes durable everything that was written to the sink's file system before the call.
    func makeEverythingDurable() async throws(StorageError) {
        try await request(.everything)
    }

    private func request(_ target: Target) async throws(StorageError) {
        let result: Result<Void, StorageError> = await withCheckedContinuation { continuation in
            let mustStart = state.withLock { state in
                state.gathering.append(Request(target: target, continuation: continuation))
                defer { state.isRunning = true }
                return !state.isRunning
            }
            if mustStart, let refusal = pool.submit({ self.run() }) {
                let refused = state.withLock { state in
                    state.isRunning = false
                    defer { state.gathering = [] }
                    return state.gathering
                }
                for request in refused {
                    request.continuation.resume(
                        returning: .failure(.unavailable(.init("no thread for storage work: \(refusal)")))
                    )
                }
            }
        }
        return try result.get()
    }

    private func run() {
        while true {
            let batch = state.withLock { state in
                defer { state.gathering = [] }
                if state.gathering.isEmpty { state.isRunning = false }
                return state.gathering
            }
            if batch.isEmpty { return }
            serve(batch)
        }
    }

    private func serve(_ batch: [Request]) {
        do {
            // Otherwise the sync may go to a file system that is no longer at the sink's path.
            try sink.check()
        } catch {
            for request in batch { request.continuation.resume(returning: .failure(error)) }
            return
        }
        var files: Set<ObjectIdentifier> = []
        var isWhole = false
        for request in batch {
            switch request.target {
            case .part(let part):
                // A failure sticks to the part, which reports it below.
                _ = try? part.share()
                files.insert(ObjectIdentifier(part))
            case .directories(let directories): files.formUnion(directories.map { ObjectIdentifier($0) })
            case .everything: isWhole = true
            }
        }
        let isWorthwhile = files.count >= Self.filesForWholeSync && Self.wholeSyncReportsErrors
        if isWhole || isWorthwhile {
            let failure = synchronizeWhole()
            for request in batch {
                request.continuation.resume(returning: Self.confirm(request.target, after: failure))
            }
        } else {
            var done: [ObjectIdentifier: Result<Void, StorageError>] = [:]
            for request in batch {
                request.continuation.resume(returning: Self.synchronize(request.target, done: &done))
            }
        }
    }

    private func synchronizeWhole() -> StorageError? {
        do {
            try sink.root.descriptor.synchronizeFileSystem()
            return nil
        } catch {
            let failure = error.inSink("syncing the file system of \(sink.path)")
            // The kernel reports the failure once, and without the file: every open part may have lost bytes.
            sink.registry.spoil(failure)
            return failure
        }
    }

    private static func confirm(_ target: Target, after failure: StorageError?) -> Result<Void, StorageError> {
        if let failure { return .failure(failure) }
        guard case .part(let part) = target else { return .success(()) }
        do {
            return .success(try part.confirmSynchronized())
        } catch {
            return .failure(error)
        }
    }

    private static func synchronize(
        _ target: Target,
        done: inout [ObjectIdentifier: Result<Void, StorageError>]
    ) -> Result<Void, StorageError> {
        switch target {
        case .everything: return .success(())
        case .part(let part):
            let result = done[ObjectIdentifier(part)] ?? Result { () throws(StorageError) in try part.synchronize() }
            done[ObjectIdentifier(part)] = result
            return result
        case .directories(let directories):
            for directory in directories {
                let result =
                    done[ObjectIdentifier(directory)]
                    ?? Result { () throws(SystemError) in try directory.descriptor.synchronize() }
                    .mapError { $0.inSink("syncing a directory") }
                done[ObjectIdentifier(directory)] = result
                if case .failure = result { return result }
            }
            return .success(())
        }
    }

    /// Whether `syncfs` reports write errors: Linux does so since 5.8; before that it only said that it tried.
    static let wholeSyncReportsErrors: Bool = {
        var system = utsname()
        guard uname(&system) == 0 else { return false }
        let release = withUnsafeBytes(of: &system.release) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        let numbers = release.split(whereSeparator: { !$0.isNumber }).prefix(2).compactMap { Int($0) }
        return numbers.count == 2 && (numbers[0], numbers[1]) >= (5, 8)
    }()
}
