import NIOCore
import NIOPosix
import SystemPackage

/// The end of a text, up to a limit.
struct BoundedText: Sendable {
    var limitBytes = 4 << 20
    private var bytes: [UInt8] = []
    private var dropped = 0

    /// The kept part, with a note of how much was dropped.
    var text: String {
        let kept = String(decoding: bytes, as: UTF8.self)
        return dropped == 0 ? kept : "(\(dropped) bytes dropped)…" + kept
    }

    mutating func append(_ more: some Collection<UInt8>) {
        bytes.append(contentsOf: more)
        // Cut seldom, since cutting moves everything.
        if bytes.count > limitBytes * 2 {
            dropped += bytes.count - limitBytes
            bytes.removeFirst(bytes.count - limitBytes)
        }
    }

    /// The first whole line with a text in it.
    func completeLine(containing part: String) -> String? {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        return lines.first { $0.contains(part) }.map(String.init)
    }
}

extension TestProcess.Progress {
    /// Takes bytes of an output; nil is its end.
    mutating func take(_ bytes: ByteBuffer?, from stream: TestProcess.Stream) {
        guard let bytes else {
            openStreams -= 1
            return
        }
        switch stream {
        case .standardOutput: output.append(bytes.readableBytesView)
        case .standardError, .either: error.append(bytes.readableBytesView)
        }
    }

    func texts(of stream: TestProcess.Stream) -> [BoundedText] {
        switch stream {
        case .standardOutput: [output]
        case .standardError: [error]
        case .either: [output, error]
        }
    }

    /// Everything for an error message.
    var report: String {
        """
        exit: \(exit.map { "\($0)" } ?? "still running")
        standard output:
        \(output.text.suffix(16 * 1024))
        standard error:
        \(error.text.suffix(16 * 1024))
        """
    }
}

/// A pipe whose write end is for a child, and whose read end is read by an event loop.
enum OutputPipe {
    /// Makes it; what is read goes to `receive`, and nil once at the end.
    static func open(_ receive: @escaping @Sendable (ByteBuffer?) -> Void) async throws -> SystemPackage.FileDescriptor
    {
        let pipe = try CloseOnExecPipe.open()
        _ = try await NIOPipeBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Reader(receive: receive))
                }
            }
            .takingOwnershipOfDescriptor(input: pipe.readEnd.rawValue)
            .get()
        return pipe.writeEnd
    }

    private final class Reader: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        let receive: @Sendable (ByteBuffer?) -> Void

        init(receive: @escaping @Sendable (ByteBuffer?) -> Void) {
            self.receive = receive
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) { receive(unwrapInboundIn(data)) }
        func channelInactive(context: ChannelHandlerContext) { receive(nil) }
    }
}
