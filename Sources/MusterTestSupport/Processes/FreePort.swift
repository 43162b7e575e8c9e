import NIOCore
import NIOPosix

/// A TCP port of 127.0.0.1 that was free a moment ago.
///
/// It may be taken by the time it is used: a server that can listen on port 0 itself should do that instead.
public enum FreePort {
    /// Finds a free port.
    public static func find() async throws -> Int {
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .bind(host: "127.0.0.1", port: 0)
            .get()
        let port = channel.localAddress?.port
        try await channel.close()
        guard let port else { throw Errors.noPort }
        return port
    }

    /// Whether a process listens on a port of 127.0.0.1.
    static func isListening(_ port: Int) async -> Bool {
        do {
            let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .connect(host: "127.0.0.1", port: port)
                .get()
            try await channel.close()
            return true
        } catch {
            return false
        }
    }

    private enum Errors: Error { case noPort }
}
