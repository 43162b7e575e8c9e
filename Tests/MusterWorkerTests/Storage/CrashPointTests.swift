import Glibc
import MusterAPI
import MusterCore
import Testing

@testable import MusterWorker

/// A worker dies, or its disk fails, before each single call of what it does to a sink; then another session takes over,
/// as the coordinator has it do (I8, I13, I17, F1, F9).
@Suite struct CrashPointTests {
    fileprivate static let old = ScratchSink.content(2_500, seed: 1)
    fileprivate static let new = ScratchSink.content(2_500, seed: 2)
    fileprivate static let path = "d/e/f"

    /// What a worker does, from the beginning of its session to its end.
    enum Work: CaseIterable, Sendable {
        /// Puts a part in place that no other session knew of.
        case ownPart
        /// Puts a part in place that was made durable and shared before.
        case sharedPart
        /// Puts a copy of a part in place, since another session may still write to the part.
        case fencedPart
        /// Replaces a file.
        case replacement
        /// Takes a file that is there already.
        case adoption
        /// Deletes its own finished file.
        case removal

        var rule: ExistingFileRule { self == .replacement ? .replace : .verify }
        /// The content that may be at the path before the work is done, `nil` for none.
        var before: [UInt8]? {
            switch self {
            case .ownPart, .sharedPart, .fencedPart: nil
            case .replacement: CrashPointTests.old
            case .adoption, .removal: CrashPointTests.new
            }
        }
        /// What is there after it.
        var after: [UInt8]? { self == .removal ? nil : CrashPointTests.new }
    }

    @Test(arguments: Work.allCases)
    func deathBeforeAnyCallIsRecoveredFrom(work: Work) async throws {
        try await atEveryCall(of: work, .death)
    }

    @Test(arguments: Work.allCases, [EIO, ENOSPC, EMFILE])
    func failureOfAnyCallIsRecoveredFrom(work: Work, number: Int32) async throws {
        try await atEveryCall(of: work, .failure(number))
    }

    @Test(arguments: Work.allCases)
    func shortWritesLoseNothing(work: Work) async throws {
        try await atEveryCall(of: work, .shortWrite)
    }

    /// Has the fault at each call in turn, until the work has fewer calls.
    private func atEveryCall(of work: Work, _ fault: FaultyKernel.Fault) async throws {
        for step in 0..<1_000 {
            let kernel = FaultyKernel(fault, at: step)
            try await recover(work, kernel)
            guard kernel.hasCome else {
                // Otherwise a fault was not noticed at the calls that matter most.
                #expect(work == .removal || work == .adoption || kernel.calls.contains("move"), "\(kernel.calls)")
                #expect(kernel.calls.count >= 5)
                return
            }
        }
        Issue.record("the work never ends")
    }

    /// Does the work with a fault, and then what is left of it as another session.
    private func recover(_ work: Work, _ kernel: FaultyKernel) async throws {
        try await ScratchSink.with { scratch in
            try prepare(work, scratch)
            var first = Session(work: work, number: 2)
            let isDone = (try? await first.perform(in: scratch.path, on: kernel)) != nil
            let last: Comment = "\(work), after \(kernel.calls)"
            // Not the contents: a message with thousands of numbers helps nobody.
            let isAsBefore = try Self.found(scratch) == work.before
            let isAsAfter = try Self.found(scratch) == work.after
            #expect(isAsAfter || !isDone && isAsBefore, last)

            var second = Session(work: work, number: 3, isFetched: first.isFetched, dead: 2)
            try await second.perform(in: scratch.path, on: Kernel())
            let isRight = try Self.found(scratch) == work.after
            #expect(isRight, last)
            #expect(try scratch.partNames() == [], last)
            let left = try scratch.sink.home.names().filter { $0 != "parts" && $0 != "spare" }
            #expect(left == ["1"], "the directories of sessions that are over are gone; \(last)")
        }
    }

    private static func found(_ scratch: ScratchSink) throws -> [UInt8]? {
        scratch.exists(path) ? try scratch.read(path) : nil
    }

    /// Makes the files that are there before the work begins, as the scratch sink's own session.
    private func prepare(_ work: Work, _ scratch: ScratchSink) throws {
        switch work {
        case .ownPart, .sharedPart, .fencedPart: return
        case .replacement, .adoption:
            for name in ["d", "d/e"] { mkdir(scratch.path + "/" + name, 0o755) }
            try scratch.write(work == .adoption ? Self.new : Self.old, to: Self.path)
        case .removal:
            let part = try scratch.sink.part(task: TaskID(1), version: 1)
            try part.write(Self.new, at: 0)
            try part.synchronize()
            var placement = try Placement(sink: scratch.sink, watch: FinalizeWatch(), isSynchronized: false)
            #expect(try placement.carryOut(scratch.order(1, path: Self.path, Self.new)).isInPlace)
        }
    }

    /// One session's part in the work.
    private struct Session {
        let work: Work
        let number: Int64
        /// Whether all bytes of the part are durable, as the coordinator knows it: then nothing is fetched again.
        var isFetched = false
        /// The session that died before this one.
        var dead: Int64?

        /// Does the work, or what is left of it. Throws at the first failure, as a job does.
        mutating func perform(in path: String, on system: any FileSystem) async throws {
            let sink = try SinkDirectory(
                name: "test", path: path, session: ScratchSink.session(number),
                mark: SinkDirectory.mark(at: path, on: system), on: system)
            if let dead { try sink.revoke([SessionID(dead)]) }
            switch work {
            case .removal:
                let owner = FileMark.Owner(installation: ScratchSink.installation, task: TaskID(1))
                let file = PurgeOrder.File(
                    path: try DestinationPath(validating: CrashPointTests.path), size: Int64(CrashPointTests.new.count),
                    owner: owner)
                let results = try sink.purge([PurgeOrder(task: TaskID(1), version: 1, file: file)])
                for result in results { _ = try result.get() }
            case .adoption: try await place(in: sink)
            case .ownPart, .sharedPart, .fencedPart, .replacement:
                // An own part is held until it is put in place.
                let part = isFetched ? nil : try fetch(into: sink)
                try await place(in: sink)
                withExtendedLifetime(part) {}
            }
            try sink.end()
        }

        private mutating func fetch(into sink: SinkDirectory) throws -> PartFile {
            let part = try sink.part(task: TaskID(1), version: 1, isAlone: work == .ownPart)
            try part.write(CrashPointTests.new, at: 0)
            if work != .ownPart {
                try part.synchronize()
                isFetched = true
            }
            return part
        }

        private func place(in sink: SinkDirectory) async throws {
            let pool = try BlockingPool(threads: 1)
            let order = FinalizeOrder(
                task: TaskID(1), version: 1, epoch: LeaseEpoch(10 + number),
                path: try DestinationPath(validating: CrashPointTests.path), size: Int64(CrashPointTests.new.count),
                chunks: ScratchSink.chunks(of: CrashPointTests.new, size: 1_000), expected: [], recorded: [],
                fenced: dead != nil || work == .fencedPart, ifExists: work.rule, modificationTime: 1_000_000_000,
                knownDigests: [], held: nil, installation: ScratchSink.installation)
            let finalizer = Finalizer(sink: sink, pool: pool, sync: DurableSync(sink: sink, pool: pool))
            let result = await finalizer.finalize([order]).first
            await pool.shutdown()
            let outcome = try #require(try result?.get())
            #expect(outcome.isInPlace, "\(outcome)")
        }
    }
}
