import MusterCurl
import Synchronization

/// A transfer loop without sockets: answers come from simulated origins, in pieces, each in a turn of the process.
final class SimulatedLoop: TransferLoop {
    private struct Transfer {
        let handler: any TransferHandler
        let request: TransferRequest
        var statistics = TransferStatistics()
        var answer: SimulatedOrigin.Answer?
        var position = 0
        var limit: Int64?
        var isPaused = false
        var isCancelled = false
        /// Whether a turn of it is due, so that no other one may be added.
        var isDue = false
        let began: Int64
        /// How often the time to the first byte has ended, and was extended.
        var silences: Int64 = 0
        /// The number of the transfer in the loop.
        let number: UInt64
    }

    private struct State {
        var transfers: [TransferID: Transfer] = [:]
        var count: UInt64 = 0
    }

    /// The most bytes that come at once.
    static let largestPiece: Int64 = 4_096

    private let process: SimulatedProcess
    private let network: SimulatedNetwork
    private let state = Mutex(State())

    init(of process: SimulatedProcess, in network: SimulatedNetwork) {
        self.process = process
        self.network = network
        process.atEnd { [self] in
            cancelAll()
            network.closeAll(of: process)
        }
    }

    func start(_ request: TransferRequest, handler: any TransferHandler) throws(CurlLoopError) -> TransferID {
        guard !process.isDead else { throw .closed }
        let id = state.withLock { state -> TransferID in
            state.count += 1
            let id = TransferID(state.count)
            var transfer = Transfer(
                handler: handler, request: request, began: process.simulation.now, number: state.count)
            transfer.statistics.effectiveURL = request.url
            transfer.isDue = true
            state.transfers[id] = transfer
            return id
        }
        network.began(request.url, of: process)
        takeTurn(id, after: 5...60)
        return id
    }

    func cancel(_ id: TransferID) {
        let isWaiting = state.withLock { state in
            guard state.transfers[id] != nil else { return false }
            state.transfers[id]?.isCancelled = true
            return state.transfers[id]?.isDue == false
        }
        if isWaiting { takeTurn(id, after: 0...1) }
    }

    func resume(_ id: TransferID) {
        let isPaused = state.withLock { state in
            guard state.transfers[id]?.isPaused == true else { return false }
            state.transfers[id]?.isPaused = false
            return state.transfers[id]?.isDue == false
        }
        if isPaused { takeTurn(id, after: 0...1) }
    }

    /// The simulated origins close idle connections themselves.
    func closeIdle(like request: TransferRequest) {}

    func shutdown() async { cancelAll() }

    private func cancelAll() {
        let open = state.withLock { $0.transfers.sorted { $0.value.number < $1.value.number }.map(\.key) }
        for id in open { cancel(id) }
    }

    private func takeTurn(_ id: TransferID, after milliseconds: ClosedRange<Int64>) {
        state.withLock { $0.transfers[id]?.isDue = true }
        let simulation = process.simulation
        simulation.after(simulation.random(milliseconds)) { [self] in process.call { self.goOn(id) } }
    }

    private func goOn(_ id: TransferID) {
        let now = state.withLock { state -> Transfer? in
            state.transfers[id]?.isDue = false
            return state.transfers[id]
        }
        guard let now else { return }
        if now.isCancelled || process.isDead { return end(id, .cancelled(now.statistics)) }
        if now.isPaused { return }
        guard let answer = now.answer else { return begin(id, now) }
        if let cut = answer.cut, now.position >= cut.after { return end(id, .failed(cut.error, now.statistics)) }
        deliver(id, now, answer)
    }

    /// Asks the origin.
    private func begin(_ id: TransferID, _ transfer: Transfer) {
        guard let answer = network.answer(transfer.request) else {
            // The origin is silent: the time to the first byte ends.
            let detail = TransferError.Detail(code: 0, message: "no answer")
            let patience = transfer.request.firstByteTimeout.components.seconds * 1_000_000_000
            if process.simulation.now - transfer.began >= patience * (1 + transfer.silences) {
                guard !transfer.handler.isTooSlow() else {
                    return end(id, .failed(.firstByteTimeout(detail), transfer.statistics))
                }
                state.withLock { $0.transfers[id]?.silences += 1 }
            }
            _ = transfer.handler.stalled()
            return takeTurn(id, after: 1_000...1_000)
        }
        state.withLock { $0.transfers[id]?.statistics.remoteAddress = answer.head.remoteAddress }
        switch transfer.handler.head(answer.head) {
        case .refuse: end(id, .refused(transfer.statistics))
        case .accept(let limit, _):
            state.withLock { state in
                state.transfers[id]?.answer = answer
                state.transfers[id]?.limit = limit
            }
            takeTurn(id, after: 0...30)
        }
    }

    /// Delivers a piece of the body.
    private func deliver(_ id: TransferID, _ transfer: Transfer, _ answer: SimulatedOrigin.Answer) {
        let limit = transfer.limit.map { Int(clamping: $0) } ?? .max
        let end = min(answer.body.count, limit)
        guard transfer.position < end else {
            let isSurplus = answer.body.count > limit
            return self.end(id, .completed(transfer.statistics, isSurplus ? .surplus : .framed))
        }
        let piece = Int(process.simulation.random(1...Self.largestPiece))
        let next = min(end, transfer.position + piece, max(answer.cut?.after ?? .max, transfer.position + 1))
        state.withLock { state in
            state.transfers[id]?.position = next
            state.transfers[id]?.statistics.bytesDelivered = Int64(next)
        }
        network.delivered(next - transfer.position, to: process)
        let verdict = answer.body.withUnsafeBytes { bytes in
            transfer.handler.body(UnsafeRawBufferPointer(rebasing: bytes[transfer.position..<next]))
        }
        switch verdict {
        case .proceed: takeTurn(id, after: 0...60)
        case .pause:
            state.withLock { $0.transfers[id]?.isPaused = true }
        case .stop: self.end(id, .stopped(transfer.statistics))
        }
    }

    private func end(_ id: TransferID, _ outcome: TransferOutcome) {
        guard let transfer = state.withLock({ $0.transfers.removeValue(forKey: id) }) else { return }
        network.ended(transfer.request.url, of: process)
        transfer.handler.finished(outcome)
    }
}
