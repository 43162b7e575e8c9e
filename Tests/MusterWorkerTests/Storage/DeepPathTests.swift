import Glibc
import MusterCore
import Synchronization
import Testing

@testable import MusterWorker

/// Each open directory is a descriptor, and there may be few of them (F22).
@Suite struct DeepPathTests {
    private static let bound = 8
    private static let bytes = ScratchSink.content(10)

    /// A sink with a small bound, in the directory of another one.
    private func sink(in scratch: ScratchSink) throws -> SinkDirectory {
        try SinkDirectory(
            name: "deep", path: scratch.path, session: ScratchSink.session(2),
            mark: SinkDirectory.mark(at: scratch.path), directories: Self.bound)
    }

    private func finalizer(of sink: SinkDirectory, in scratch: ScratchSink) -> Finalizer {
        Finalizer(sink: sink, pool: scratch.pool, sync: DurableSync(sink: sink, pool: scratch.pool))
    }

    /// How many directories this process has open whose paths begin with `d` below the sink.
    private static func openDirectories(of sink: String) -> Int {
        let below = "/\(sink.split(separator: "/").last ?? "")/d"
        let numbers = (try? Directory(path: "/proc/self/fd").names()) ?? []
        return numbers.filter { number in
            var target = [CChar](repeating: 0, count: 4_096)
            readlink("/proc/self/fd/\(number)", &target, 4_095)
            let path = target.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
            return path.contains(below) && !path.hasSuffix("/f")
        }.count
    }

    @Test(arguments: [1, 37])
    func aBatchHoldsNoMoreDirectoriesOfDeepPathsThanOfFlatOnes(depth: Int) async throws {
        try await ScratchSink.with { scratch in
            let finalizer = finalizer(of: try sink(in: scratch), in: scratch)
            let way = String(repeating: "x/", count: depth)
            let paths = (1...16).map { "d\($0)/\(way)f" }
            var orders: [FinalizeOrder] = []
            for (index, path) in paths.enumerated() {
                try scratch.makePart(Int64(index + 1), Self.bytes)
                orders.append(try scratch.order(Int64(index + 1), path: path, Self.bytes))
            }
            let most = Mutex(0)
            let sinkPath = scratch.path
            let outcomes = await finalizer.finalize(
                orders,
                watch: FinalizeWatch(mayContinue: {
                    let count = Self.openDirectories(of: sinkPath)
                    most.withLock { $0 = max($0, count) }
                    return true
                }))
            for (path, outcome) in zip(paths, outcomes) {
                #expect(try outcome.get().isInPlace)
                #expect(try scratch.read(path) == Self.bytes)
            }
            let held = most.withLock { $0 }
            #expect(held > 0 && held <= 2 * Self.bound, "\(held)")
        }
    }

    @Test func purgesOfDeepPathsHoldFewDirectoriesAndDeleteEachFile() async throws {
        try await ScratchSink.with { scratch in
            let sink = try sink(in: scratch)
            let finalizer = finalizer(of: sink, in: scratch)
            let way = String(repeating: "x/", count: 20)
            var purges: [PurgeOrder] = []
            for task in 1...6 as ClosedRange<Int64> {
                try scratch.makePart(task, Self.bytes)
                let order = try scratch.order(task, path: "d\(task)/\(way)f", Self.bytes)
                #expect(try await finalizer.finalize(order).isInPlace)
                let owner = FileMark.Owner(installation: ScratchSink.installation, task: TaskID(task))
                let file = PurgeOrder.File(path: order.path, size: order.size, owner: owner)
                purges.append(PurgeOrder(task: TaskID(task), version: 1, file: file))
            }
            for result in try sink.purge(purges) { #expect(try result.get() == .deleted) }
            for purge in purges { #expect(!scratch.exists(purge.file?.path.string ?? "")) }
        }
    }

    @Test func looksAndDeletionsSyncNoDirectoriesOnTheWay() async throws {
        try await ScratchSink.with { scratch in
            let sink = try sink(in: scratch)
            let finalizer = finalizer(of: sink, in: scratch)
            try scratch.makePart(1, Self.bytes)
            let order = try scratch.order(1, path: "d/" + String(repeating: "x/", count: 20) + "f", Self.bytes)
            #expect(try await finalizer.finalize(order).isInPlace)

            // What stands at a path may be reported as finished.
            var judging = SinkWalk(sink)
            let judged = try judging.place(of: order.path, making: false)
            #expect(judged != nil && judging.syncs > 0)
            var looking = SinkWalk(sink, isLooking: true)
            let seen = try looking.place(of: order.path, making: false)
            #expect(seen != nil && looking.syncs == 0)

            let owner = FileMark.Owner(installation: ScratchSink.installation, task: TaskID(1))
            let file = PurgeOrder.File(path: order.path, size: order.size, owner: owner)
            var removal = try FileRemoval(sink)
            let removed = try removal.remove(file, of: PurgeOrder(task: TaskID(1), version: 1, file: file))
            #expect(removed == .deleted && removal.walk.syncs == 0)
        }
    }

    /// The directories above the link were closed on the way to it.
    @Test func aLinkFarBelowTheSinkIsNotFollowed() async throws {
        let outside = try ScratchSink.makeDirectory()
        try await ScratchSink.with { scratch in
            let finalizer = finalizer(of: try sink(in: scratch), in: scratch)
            let way = "d/" + String(repeating: "x/", count: 20)
            try scratch.makePart(1, Self.bytes)
            #expect(try await finalizer.finalize(scratch.order(1, path: way + "f", Self.bytes)).isInPlace)
            #expect(symlink(outside, scratch.path + "/" + way + "link") == 0)
            try scratch.makePart(2, Self.bytes)
            let order = try scratch.order(2, path: way + "link/y/y/y/y/y/y/f", Self.bytes)
            let error = await #expect(throws: StorageError.self) { try await finalizer.finalize(order) }
            guard case .symbolicLink? = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(try Directory(path: outside).names().isEmpty)
        }
        ScratchSink.remove(outside)
    }
}
