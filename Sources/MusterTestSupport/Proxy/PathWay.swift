import NIOCore
import Synchronization

/// What all connections of a path have in common: the delay and the rate of both directions, and the present fault.
final class PathWay: Sendable {
    /// A fault, with the number by which a connection tells it from earlier ones.
    struct Present: Sendable {
        var fault: PathFault?
        var number = 0
    }

    /// An open direction of a connection. Its line is used on its own event loop alone.
    private struct Line: Sendable {
        let channel: any Channel
        let line: NIOLoopBound<DelayLine>
    }

    private struct State: Sendable {
        var present = Present()
        var lines: [ObjectIdentifier: Line] = [:]
        var lostAnswers = 0
        var connections = 0
    }

    let delay: TimeAmount
    let bytesPerSecond: Int?
    private let state = Mutex(State())

    init(delay: TimeAmount, bytesPerSecond: Int?) {
        self.delay = delay
        self.bytesPerSecond = bytesPerSecond
    }

    /// The present fault.
    var present: Present { state.withLock { $0.present } }

    /// How many connections were made so far.
    var connections: Int { state.withLock { $0.connections } }

    /// How many connections were cut in the middle of what came from the server.
    var lostAnswers: Int { state.withLock { $0.lostAnswers } }

    /// Counts one.
    func noteLostAnswer() { state.withLock { $0.lostAnswers += 1 } }

    /// Changes the fault, and tells all connections.
    func inject(_ fault: PathFault?) async {
        let lines = state.withLock { state in
            state.present = Present(fault: fault, number: state.present.number + 1)
            return Array(state.lines.values)
        }
        for line in lines {
            if fault == .reset {
                // The connection may end by itself at this moment.
                try? await ConnectionEnd.reset(line.channel)
                line.channel.close(promise: nil)
            } else {
                line.channel.eventLoop.execute { line.line.value.passOn() }
            }
        }
    }

    /// Passes on to each of two channels of one event loop what comes from the other. To be called there.
    func join(_ client: any Channel, _ server: any Channel) throws {
        // A real client has its connection one round trip after it asked for it. Here the connection exists at once, so
        // its first bytes wait for that time.
        let begin = NIODeadline.now() + delay * 2
        state.withLock { $0.connections += 1 }
        for direction in PathFault.Direction.allCases {
            let (from, to) = direction == .toServer ? (client, server) : (server, client)
            let line = DelayLine(from: from, to: to, self, direction, begin: begin)
            try from.pipeline.syncOperations.addHandler(line)
            let bound = Line(channel: from, line: NIOLoopBound(line, eventLoop: from.eventLoop))
            let id = ObjectIdentifier(line)
            state.withLock { $0.lines[id] = bound }
        }
        for channel in [client, server] { _ = channel.setOption(.autoRead, value: true) }
    }

    /// Forgets a direction that has ended.
    func forget(_ line: DelayLine) {
        let id = ObjectIdentifier(line)
        _ = state.withLock { $0.lines.removeValue(forKey: id) }
    }
}
