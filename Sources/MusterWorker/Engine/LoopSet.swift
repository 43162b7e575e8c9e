import MusterCurl
import Synchronization

/// The transfer loops of a worker. All transfers of a seat run on one loop, which keeps the connection of the previous
/// transfer; others run on the loop with the fewest transfers. All ftp, ftps and sftp transfers run on the first loop:
/// their servers limit logins, and a connection kept idle in one loop would occupy a login that another loop needs.
final class LoopSet: Sendable {
    private let loops: [any TransferLoop]
    private let loads: Mutex<[Int]>

    /// Starts the loops. An idle connection is closed after `idlePatience`, because another worker may have the lane by
    /// then (I5).
    convenience init(count: Int, slots: Int, idlePatience: Duration = .seconds(1)) throws(CurlLoopError) {
        var loops: [any TransferLoop] = []
        for _ in 0..<max(1, count) {
            let configuration = CurlLoopConfiguration(
                maxConnections: max(256, 2 * slots), connectionCacheSize: 64, idlePatience: idlePatience)
            loops.append(try CurlLoop(configuration))
        }
        self.init(loops)
    }

    /// A set of loops that run already; at least one.
    init(_ loops: [any TransferLoop]) {
        self.loops = loops
        loads = Mutex(Array(repeating: 0, count: loops.count))
    }

    /// Runs a transfer of `url` on the loop of `seat`, or on the least loaded loop, and counts it there while it runs.
    func withLoop<Value: Sendable>(
        for url: String, at seat: Int? = nil, _ transfer: (any TransferLoop) async -> Value
    ) async -> Value {
        let index = loads.withLock { loads in
            let index =
                if CurlLoop.isOfFileServer(url) { 0 } else if let seat { seat % loads.count } else {
                    loads.indices.min { loads[$0] < loads[$1] } ?? 0
                }
            loads[index] += 1
            return index
        }
        defer { loads.withLock { $0[index] -= 1 } }
        return await transfer(loops[index])
    }

    /// Closes the idle connections of all other loops that match this request: the origin may serve only one connection
    /// at a time (range contract, row 22b).
    func closeIdle(like request: TransferRequest, besides own: any TransferLoop) {
        for loop in loops where loop !== own { loop.closeIdle(like: request) }
    }

    /// Ends the threads of all loops.
    func shutdown() async {
        for loop in loops { await loop.shutdown() }
    }
}
