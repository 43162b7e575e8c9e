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

    @Test func oneThatHasJustComeIsNotTakenForOneThatStaysWithoutARequest() throws {
        let table = ConnectionTable(limit: 3)
        let bodies = try [channel(), channel()]
        for (number, body) in bodies.enumerated() {
            #expect(table.enter(body, now: at(Int64(number))))
            // The rest of a body is owed.
            table.note(body, waitingSince: at(Int64(number)), isIdle: false)
        }
        let fresh = try channel()
        #expect(table.enter(fresh, now: at(2_000)))
        #expect(table.enter(try channel(), now: at(2_500)))
        // What has waited longest went, although it has a request.
        #expect(!bodies[0].isActive && bodies[1].isActive && fresh.isActive)
        // A second after it came, the one without a request goes first.
        #expect(table.enter(try channel(), now: at(3_100)))
        #expect(bodies[1].isActive && !fresh.isActive && table.count == 3)
    }
}
