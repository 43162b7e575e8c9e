import MusterCore
import MusterTestSupport
import Synchronization
import Testing

@testable import MusterWorker

/// Running chunks are made durable while their bytes come in (I4, I16).
@Suite struct CheckpointerTests {
    /// Writes more bytes once, as a transfer does that goes on during a sync.
    private final class LateBytes: Sendable {
        private let writer = Mutex<ChunkWriter?>(nil)

        func come(to writer: ChunkWriter) { self.writer.withLock { $0 = writer } }

        func arrive() {
            let writer = writer.withLock { writer in
                defer { writer = nil }
                return writer
            }
            if let writer { [UInt8]([4, 5]).withUnsafeBytes { _ = writer.write($0) } }
        }
    }

    @Test func bytesThatComeDuringASyncAreNotDurableWithIt() async throws {
        try await ScratchSink.with { scratch in
            let late = LateBytes()
            let sink = try scratch.begin(2, on: FaultyKernel { (_, _) throws(SystemError) in late.arrive() })
            let gate = TrustGate { 0 }
            _ = gate.open(until: 1)
            let writer = ChunkWriter(
                try sink.part(task: TaskID(1), version: 1), after: DurablePrefix(offset: 0, crc: CRC32C.empty),
                gate: gate,
                control: LeaseControl())
            let bytes: [UInt8] = [1, 2, 3, 4, 5]
            _ = bytes.prefix(3).withUnsafeBytes { writer.write($0) }
            late.come(to: writer)

            let told = Observed<[DurablePrefix?]>([])
            let checkpointer = Checkpointer(every: .zero) { _, news in
                if case .progress(let prefix, _) = news { told.update { $0.append(prefix) } }
            }
            checkpointer.watch(
                LeaseName(chunk: ChunkID(1), epoch: LeaseEpoch(1)), writer, known: 0,
                sync: DurableSync(sink: sink, pool: scratch.pool))
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { await checkpointer.run() }
                let prefixes = try await told.wait(for: "two checkpoints") { $0.count >= 2 }
                group.cancelAll()
                let expected = [3, 5].map { end in
                    DurablePrefix(offset: Int64(end), crc: CRC32C.extend(CRC32C.empty, bytes.prefix(end)))
                }
                #expect(prefixes == expected)
            }
        }
    }
}
