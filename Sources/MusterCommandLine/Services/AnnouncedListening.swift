import ServiceLifecycle

/// Says where the coordinator listens, once it does.
struct AnnouncedListening: Service {
    /// The port, once requests are accepted.
    let port: Eventual<Int>
    /// The host that was asked for.
    let host: String
    /// Where it is said.
    let announcement: Announcement

    /// Says it, and then waits for the shutdown as every service does.
    func run() async throws {
        if let number = try? await cancelWhenGracefulShutdown({ [port] in try await port.value() }) {
            announcement.listening(ListenAddress(host: host, port: number))
        }
        try? await gracefulShutdown()
    }
}
