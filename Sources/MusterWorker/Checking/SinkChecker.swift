import CLibisal
import Glibc
import MusterCore
import Synchronization

/// Looks at pages of sinks for a check, one at a time, on one thread that yields to all others (adr/0048). It never writes.
///
/// A sink that hangs holds up the checks of this worker, and nothing else.
final class SinkChecker: Sendable {
    private let pool: BlockingPool
    private let pace: CheckPace
    /// Counts looks and stops: a look goes on as long as this has its number.
    private let turn = Atomic<Int64>(0)

    /// The longest sleep, in nanoseconds: a look that is to stop sleeps no longer.
    private static let nap: Int64 = 50_000_000

    /// A checker whose thread is running. Throws when the system has no thread for it.
    init(
        pace: CheckPace = CheckPace(), carrier: BlockingPool.Carrier = .threads
    ) throws(BlockingPool.Refusal) {
        pool = try BlockingPool(threads: 1, carrier: carrier)
        self.pace = pace
    }

    /// Notes that body bytes came in: the check reads more slowly for a while.
    func noteTraffic() { pace.noteTraffic() }

    /// Looks at a page in place of the one that is under way. Unless it is stopped, `tell` gets `checked` or `checkFailed`.
    func look(
        at order: CheckOrder, in directory: SinkDirectory, tell: @escaping @Sendable (MachineInput) -> Void
    ) {
        let number = turn.add(1, ordering: .relaxed).newValue
        let refusal = pool.submit { [self] in
            muster_be_idle()
            let check = SinkCheck(directory) { self.mayTake($0, in: number) }
            do throws(StorageError) {
                if let report = try check.report(on: order) { tell(.checked(report)) }
            } catch {
                tell(.checkFailed(order.name))
            }
        }
        if refusal != nil { tell(.checkFailed(order.name)) }
    }

    /// Stops the look that is under way, if there is one.
    func stop() {
        turn.add(1, ordering: .relaxed)
    }

    /// Ends the thread.
    func shutdown() async {
        stop()
        await pool.shutdown()
    }

    /// Waits until so many bytes may be read. Returns `false` if the look is to stop.
    private func mayTake(_ bytes: Int64, in number: Int64) -> Bool {
        var left = pace.take(bytes)
        while left > 0, turn.load(ordering: .relaxed) == number {
            let span = min(left, Self.nap)
            usleep(UInt32(span / 1_000))
            left -= span
        }
        return turn.load(ordering: .relaxed) == number
    }
}
