import MusterCurl
import Synchronization

/// The transfer loops of a worker. The transfers of a seat go to one loop, where the connection of the one before is; others go to the
/// loop that carries the fewest. Those of ftp, ftps and sftp all go to the first one: their servers bound logins, and a connection that is kept idle in one
/// loop would take the place of a login of another.
final class LoopSet: Sendable {
    private let loops: [CurlLoop]
    private let loads: Mutex<[Int]>

    /// Starts the loops. A connection that nothing runs on is closed after `idlePatience`: another worker may have a lane by then (I5).
    init(count: Int, slots: Int, idlePatience: Duration = .seconds(1)) throws(CurlLoopError) {
        var loops: [CurlLoop] = []
        for _ in 0..<max(1, count) {
            let configuration = CurlLoopConfiguration(
                maxConnections: max(256, slots), connectionCacheSize: 64, idlePatience: idlePatience)
            loops.append(try CurlLoop(configuration))
        }
        self.loops = loops
        loads = Mutex(Array(repeating: 0, count: loops.count))
    }

    /// Runs a transfer of `url` on the loop of a seat, or on the least loaded one, and counts it there as long as it runs.
    func withLoop<Value: Sendable>(
        for url: String, at seat: Int? = nil, _ transfer: (CurlLoop) async -> Value
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

    /// Closes the connections of all other loops that are kept for requests like this one, and on which nothing runs: the origin may serve one at a time
    /// (range contract, row 22b).
    func closeIdle(like request: TransferRequest, besides own: CurlLoop) {
        for loop in loops where loop !== own { loop.closeIdle(like: request) }
    }

    /// Ends all threads.
    func shutdown() async {
        for loop in loops { await loop.shutdown() }
    }
}
