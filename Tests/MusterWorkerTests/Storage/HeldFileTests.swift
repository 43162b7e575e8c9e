import Glibc
import MusterCore
import Testing

@testable import MusterWorker

/// Files that are made of other files of the sink, or stand at their paths already, many at a time.
@Suite("Files that are there")
struct HeldFileTests {
    private static let bytes = [UInt8](repeating: 0x6d, count: 5_000)

    /// Orders for files that stand at their own paths already.
    private func orders(_ names: [String], _ scratch: ScratchSink) throws -> [FinalizeOrder] {
        for name in names { try scratch.write(Self.bytes, to: name) }
        return try names.enumerated().map { index, name in
            try scratch.order(
                Int64(index + 1), path: name, Self.bytes, ifExists: .replace, held: DestinationPath(validating: name))
        }
    }

    /// Otherwise 3,000 unchanged files take as long as fetching them.
    @Test func fileThatStoodBeforeACommonSyncNeedsNoSyncOfItsOwn() async throws {
        try await ScratchSink.with { scratch in
            let orders = try orders(["a", "b", "c"], scratch)
            var look = try Placement(sink: scratch.sink, watch: FinalizeWatch(), isSynchronized: false)
            let standing = look.heldFiles(of: Array(orders.dropLast()))
            #expect(standing.count == 2)
            // Another process writes the same bytes again after the common sync.
            try scratch.setModificationTime(1_000_000_000, of: "b")
            var placement = try Placement(
                sink: scratch.sink, watch: FinalizeWatch(), isSynchronized: true, standing: standing)
            for (order, syncs) in zip(orders, [0, 1, 2]) {
                guard case .inPlace = try placement.carryOut(order) else {
                    Issue.record("\(order.path) is not in place")
                    continue
                }
                #expect(placement.ownSyncs == syncs, "\(order.path)")
            }
        }
    }

    @Test func fileAtItsPathKeepsItsInode() async throws {
        try await ScratchSink.with { scratch in
            let orders = try orders(["a", "b", "c", "d"], scratch)
            let before = ["a", "b", "c", "d"].map { scratch.inode($0) }
            for result in await scratch.finalizer.finalize(orders) {
                guard case .success(.inPlace) = result else {
                    Issue.record("\(result)")
                    continue
                }
            }
            #expect(["a", "b", "c", "d"].map { scratch.inode($0) } == before)
            #expect(try scratch.ownNames().isEmpty)
        }
    }
}
