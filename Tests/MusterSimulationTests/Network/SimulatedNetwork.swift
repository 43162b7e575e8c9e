import FoundationEssentials
import MusterAPI
import MusterCurl
import Synchronization

/// The network between workers, coordinators and origins: messages are late, lost, repeated and reordered (F7), and origins are reached.
final class SimulatedNetwork: Sendable {
    /// A process that answers requests.
    struct Listener: Sendable {
        let process: SimulatedProcess
        let answer: @Sendable (APIRequest) async -> APIResponse
    }

    private struct State {
        var listeners: [String: Listener] = [:]
        var origins: [String: SimulatedOrigin] = [:]
        /// Pairs of names between which no message passes, in this direction.
        var cuts: Set<[String]> = []
        /// How many messages of a thousand are lost, and how many are repeated.
        var losses: Int64 = 0
        var repetitions: Int64 = 0
        /// The running transfers by origin and process.
        var transfers: [String: [Int: Int]] = [:]
        var cap = Int.max
        var problems: [String] = []
        /// Bytes of bodies that came to workers, and when.
        var deliveries: [(at: Int64, process: Int, bytes: Int64)] = []
    }

    private let simulation: Simulation
    private let state = Mutex(State())

    init(_ simulation: Simulation) { self.simulation = simulation }

    /// Adds an origin.
    func add(_ origin: SimulatedOrigin) { state.withLock { $0.origins[origin.host] = origin } }

    /// Lets a process answer at a URL.
    func listen(at server: String, _ listener: Listener) { state.withLock { $0.listeners[server] = listener } }

    /// Loses and repeats so many of a thousand messages from now on.
    func disturb(losses: Int64, repetitions: Int64) {
        state.withLock { ($0.losses, $0.repetitions) = (losses, repetitions) }
    }

    /// Cuts the way from one name to another, or mends it.
    func cut(_ from: String, _ to: String, _ isCut: Bool) {
        state.withLock { state in
            if isCut { state.cuts.insert([from, to]) } else { state.cuts.remove([from, to]) }
        }
    }

    /// How a process sends requests to coordinators.
    func send(of process: SimulatedProcess) -> APISend {
        { [self] request in
            guard !process.isDead else { throw CancellationError() }
            let server = String(request.url.prefix { $0 != "/" } + "//" + request.url.dropFirst(7).prefix { $0 != "/" })
            guard let listener = state.withLock({ $0.listeners[server] }), !listener.process.isDead else {
                throw Unreachable("no process listens at \(server)", isRefused: true)
            }
            let (answers, reply) = AsyncStream.makeStream(of: APIResponse?.self)
            simulation.after((request.timeout ?? .seconds(300)).components.seconds * 1_000) { reply.yield(nil) }
            if passes(process.name, server) { carry(request, to: listener, from: process, server, reply) }
            if state.withLock({ $0.repetitions }) > 0, simulation.chance(state.withLock({ $0.repetitions })) {
                carry(request, to: listener, from: process, server, reply)
            }
            for await answer in answers {
                guard !process.isDead else { throw CancellationError() }
                guard let answer else { throw Unreachable("\(server) does not answer", isTimeout: true) }
                return answer
            }
            throw CancellationError()
        }
    }

    private func passes(_ from: String, _ to: String) -> Bool {
        let (isCut, losses) = state.withLock { ($0.cuts.contains([from, to]), $0.losses) }
        return !isCut && !simulation.chance(losses)
    }

    private func carry(
        _ request: APIRequest, to listener: Listener, from process: SimulatedProcess, _ server: String,
        _ reply: AsyncStream<APIResponse?>.Continuation
    ) {
        simulation.after(simulation.random(0...20)) { [self] in
            guard !listener.process.isDead else {
                reply.yield(nil)
                return
            }
            listener.process.run { [self] in
                let answer = await listener.answer(request)
                guard !listener.process.isDead, passes(server, process.name) else { return }
                simulation.after(simulation.random(0...20)) { reply.yield(answer) }
            }
        }
    }

    /// The answer of an origin; `nil` for none.
    func answer(_ request: TransferRequest) -> SimulatedOrigin.Answer? {
        state.withLock { $0.origins[Self.host(of: request.url)] }?.answer(request, simulation)
    }

    /// Notes it as a problem when more transfers than this run at an origin at once (I5).
    func capTransfers(at cap: Int) { state.withLock { $0.cap = cap } }

    /// What was wrong with the transfers.
    var problems: [String] { state.withLock { $0.problems } }

    /// Counts a transfer that begins (I5).
    func began(_ url: String, of process: SimulatedProcess) {
        let host = Self.host(of: url)
        state.withLock { state in
            state.transfers[host, default: [:]][process.number, default: 0] += 1
            let count = (state.transfers[host] ?? [:]).values.reduce(0, +)
            if count > state.cap { state.problems.append("I5: \(count) transfers run at \(host)") }
        }
    }

    /// Counts a transfer that is over.
    func ended(_ url: String, of process: SimulatedProcess) {
        let host = Self.host(of: url)
        state.withLock { state in
            if let count = state.transfers[host]?[process.number] { state.transfers[host]?[process.number] = count - 1 }
        }
    }

    /// Forgets the transfers of a process that was killed: the system closes its connections.
    func closeAll(of process: SimulatedProcess) {
        state.withLock { state in
            for host in state.transfers.keys { state.transfers[host]?[process.number] = nil }
        }
    }

    /// Counts bytes of a body that came to a worker (I16).
    func delivered(_ count: Int, to process: SimulatedProcess) {
        let now = simulation.now
        state.withLock { $0.deliveries.append((now, process.number, Int64(count))) }
    }

    /// The bytes that came to all workers.
    var deliveredBytes: Int64 { state.withLock { $0.deliveries.reduce(0) { $0 + $1.bytes } } }

    /// The bytes that came to a worker since a moment.
    func delivered(to process: SimulatedProcess, since moment: Int64) -> Int64 {
        state.withLock { state in
            state.deliveries.reduce(0) { $0 + ($1.process == process.number && $1.at >= moment ? $1.bytes : 0) }
        }
    }

    private static func host(of url: String) -> String { String(url.dropFirst("http://".count).prefix { $0 != "/" }) }
}
