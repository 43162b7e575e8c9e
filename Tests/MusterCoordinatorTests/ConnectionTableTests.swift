import NIOCore
import NIOEmbedded
import Testing

@testable import MusterCoordinator

/// Which connections make room for a new one (I19, F23).
@Suite struct ConnectionTableTests {
    private func at(_ milliseconds: Int64) -> NIODeadline { .uptimeNanoseconds(0) + .milliseconds(milliseconds) }

    /// An open connection.
    private func channel() throws -> EmbeddedChannel {
        let channel = EmbeddedChannel()
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        return channel
    }

    @Test func newConnectionIsNotTakenForOneThatStaysWithoutARequest() throws {
        let table = ConnectionTable(limit: 3)
        let bodies = try [channel(), channel()]
        for (number, body) in bodies.enumerated() {
            #expect(table.enter(body, now: at(Int64(number))))
            // The peer still owes the rest of its body.
            table.note(body, waitingSince: at(Int64(number)), isIdle: false)
        }
        let fresh = try channel()
        #expect(table.enter(fresh, now: at(2_000)))
        #expect(table.enter(try channel(), now: at(2_500)))
        // The connection that has waited longest was closed, although it has a request.
        #expect(!bodies[0].isActive && bodies[1].isActive && fresh.isActive)
        // One second after it came, the connection without a request is closed first.
        #expect(table.enter(try channel(), now: at(3_100)))
        #expect(bodies[1].isActive && !fresh.isActive && table.count == 3)
    }
}
