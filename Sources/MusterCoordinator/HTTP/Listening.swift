import ServiceLifecycle
import Synchronization

/// Why a coordinator can't listen where it was told to.
public struct ListenFailure: Error, CustomStringConvertible {
    /// Where it was to listen, and why it can't.
    public let description: String
}

/// Says of a server that can't begin to listen where that was to be: the system's error names no address.
final class Listening: Sendable {
    private let address: String
    private let hasBegun = Atomic(false)

    /// Listening on a port of a host.
    init(host: String, port: Int) {
        address = host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    /// The server listens. Whatever it fails of from now on, it isn't the address.
    func begin() { hasBegun.store(true, ordering: .relaxed) }

    /// A server whose failure to listen names the address.
    func service(_ server: any Service) -> any Service { Server(server: server, listening: self) }

    private struct Server: Service {
        let server: any Service
        let listening: Listening

        func run() async throws {
            do {
                try await server.run()
            } catch  where !listening.hasBegun.load(ordering: .relaxed) && !(error is CancellationError) {
                throw ListenFailure(description: "can't listen on \(listening.address): \(error)")
            }
        }
    }
}
