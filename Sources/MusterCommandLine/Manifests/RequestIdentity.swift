import Crypto
import FoundationEssentials
import MusterCore

/// Stands for a set of tasks: two requests have the same identity if they have the same tasks, in whatever order.
///
/// The SHA-256 of each task is added up, so that a list of any length is identified without sorting or holding it.
struct RequestIdentity: Sendable {
    private var sum: [UInt64] = [0, 0, 0, 0]

    /// The identity of no tasks.
    init() {}

    /// Adds a task.
    mutating func add(_ task: TaskSpecification) {
        // Lengths stand before the texts, so that no two tasks read alike.
        var text = ""
        func field(_ value: String) { text += "\(value.utf8.count):\(value)," }
        field(task.key)
        field(task.path.string)
        field(task.size.map(String.init) ?? "")
        field(String(task.priority))
        for source in task.sources { field(source.string) }
        for digest in task.digests { field("\(digest.algorithm.rawValue) \(digest.hexadecimal)") }
        for header in task.headers.sorted(by: { $0.key < $1.key }) { field("\(header.key): \(header.value)") }
        for (index, byte) in SHA256.hash(data: Data(text.utf8)).enumerated() {
            // Byte by byte into four words; each word is added with overflow.
            let lane = index / 8
            sum[lane] &+= UInt64(byte) << UInt64(8 * (index % 8))
        }
    }

    /// 64 bits of it in hexadecimal, as names of groups show it.
    var text: String {
        let digest = SHA256.hash(data: Data(sum.map { String($0, radix: 16) }.joined(separator: " ").utf8))
        return ContentDigest(algorithm: .sha256, bytes: digest).hexadecimal.prefix(16).description
    }
}
