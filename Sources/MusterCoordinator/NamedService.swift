public import ServiceLifecycle

/// A service that is logged by the name of its type alone.
///
/// The lifecycle logs the description of a service, and the description of a value shows all of its members: tokens,
/// connection strings. Every service of Muster runs in this wrapper, so that no service has to hide them by itself.
public struct NamedService: Service, CustomStringConvertible {
    private let service: any Service
    /// The name of the service's type.
    public let description: String

    /// Wraps a service.
    public init(_ service: any Service) {
        self.service = service
        description = "\(type(of: service))"
    }

    /// Runs the service.
    public func run() async throws {
        try await service.run()
    }
}
