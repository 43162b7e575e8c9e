import ServiceLifecycle
import Synchronization

/// A coordinator can't listen on its configured address.
public struct ListenFailure: Error, CustomStringConvertible {
    /// The address, and why the coordinator can't listen there.
    public let description: String
}

/// Adds the address to the error of a server that can't begin to listen: the system's error names no address.
final class Listening: Sendable {
    private let address: String
    private let hasBegun = Atomic(false)

    /// Listening on a port of a host.
    init(host: String, port: Int) {
        address = host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    /// Notes that the server listens. A later failure is not about the address.
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
