import Synchronization

/// Gathers orders that arrive while others are being carried out, so that one sync of the disk serves many of them.
///
/// There is no task of its own: one of the waiting callers carries out the batch for all of them, and hands the next
/// batch to one of the callers waiting in it.
final class Batcher<Order: Sendable, Outcome: Sendable>: Sendable {
    private struct Waiting: Sendable {
        let order: Order
        let continuation: CheckedContinuation<Turn, Never>
    }

    private enum Turn: Sendable {
        /// Carry out these orders; the first one is the receiver's own.
        case lead([Waiting])
        /// Another caller carried out the order.
        case settled(Outcome?)
    }

    private struct State {
        var waiting: [Waiting] = []
        var leading = 0
    }

    private let state = Mutex(State())
    private let lanes: Int
    private let limit: Int
    private let carryOut: @Sendable ([Order]) async -> [Outcome]

    /// A batcher.
    ///
    /// - Parameters:
    ///   - lanes: how many batches may be under way at once.
    ///   - limit: the most orders of a batch.
    ///   - carryOut: returns an outcome for each order, at its index.
    init(lanes: Int, limit: Int, _ carryOut: @escaping @Sendable ([Order]) async -> [Outcome]) {
        self.lanes = lanes
        self.limit = limit
        self.carryOut = carryOut
    }

    /// Carries out an order together with others; `nil` only if `carryOut` returned too few outcomes.
    func submit(_ order: Order) async -> Outcome? {
        let turn = await withCheckedContinuation { continuation in
            let waiting = Waiting(order: order, continuation: continuation)
            let leads = state.withLock { state in
                guard state.leading < lanes else {
                    state.waiting.append(waiting)
                    return false
                }
                state.leading += 1
                return true
            }
            if leads { continuation.resume(returning: .lead([waiting])) }
        }
        switch turn {
        case .settled(let outcome): return outcome
        case .lead(let batch): return await lead(batch)
        }
    }

    private func lead(_ batch: [Waiting]) async -> Outcome? {
        let outcomes = await carryOut(batch.map(\.order))
        for index in batch.indices.dropFirst() {
            let outcome = index < outcomes.count ? outcomes[index] : nil
            batch[index].continuation.resume(returning: .settled(outcome))
        }
        let next = state.withLock { state -> [Waiting] in
            let next = Array(state.waiting.prefix(limit))
            state.waiting.removeFirst(next.count)
            if next.isEmpty { state.leading -= 1 }
            return next
        }
        next.first?.continuation.resume(returning: .lead(next))
        return outcomes.first
    }
}
