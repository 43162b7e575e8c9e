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
    private let listing = PartListing()
    /// Counts looks and stops: a look goes on, and tells what it saw, as long as this has its number.
    private let turn = Mutex<Int64>(0)

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

    /// Looks at a page in place of the one that is under way. Unless it is stopped, `tell` gets `checked` or `checkFailed`;
    /// nothing once `stop` has returned. `tell` is called under a lock: it must not call this object.
    func look(
        at order: CheckOrder, in directory: SinkDirectory, tell: @escaping @Sendable (MachineInput) -> Void
    ) {
        let number = nextTurn()
        let refusal = pool.submit { [self] in
            muster_be_idle()
            let check = SinkCheck(directory, listing: listing) { self.mayTake($0, in: number) }
            let news: MachineInput?
            do throws(StorageError) {
                news = try check.report(on: order).map { MachineInput.checked($0) }
            } catch {
                news = .checkFailed(order.name)
            }
            turn.withLock { turn in
                if turn == number, let news { tell(news) }
            }
        }
        if refusal != nil { tell(.checkFailed(order.name)) }
    }

    /// Stops the look that is under way, if there is one.
    func stop() {
        _ = nextTurn()
    }

    private func nextTurn() -> Int64 {
        turn.withLock { turn in
            turn += 1
            return turn
        }
    }

    private func isCurrent(_ number: Int64) -> Bool { turn.withLock { $0 == number } }

    /// Ends the thread.
    func shutdown() async {
        stop()
        await pool.shutdown()
    }

    /// Waits until so many bytes may be read. Returns `false` if the look is to stop.
    private func mayTake(_ bytes: Int64, in number: Int64) -> Bool {
        var left = pace.take(bytes)
        while left > 0, isCurrent(number) {
            let span = min(left, Self.nap)
            usleep(UInt32(span / 1_000))
            left -= span
        }
        return isCurrent(number)
    }
}
