import ServiceLifecycle

/// Announces where the coordinator listens, once it does.
struct AnnouncedListening: Service {
    /// The port, once requests are accepted.
    let port: Eventual<Int>
    /// The host that was requested.
    let host: String
    /// Where it is announced.
    let announcement: Announcement
    /// Lets the commands of this user find the coordinator's token at its address.
    let publish: @Sendable (ListenAddress) -> TokenFile?

    /// Announces the address, and then waits for the shutdown as every service does.
    func run() async throws {
        if let number = try? await cancelWhenGracefulShutdown({ [port] in try await port.value() }) {
            let address = ListenAddress(host: host, port: number)
            let published = publish(address)
            announcement.listening(address)
            try? await gracefulShutdown()
            withExtendedLifetime(published) {}
        }
        try? await gracefulShutdown()
    }
}
