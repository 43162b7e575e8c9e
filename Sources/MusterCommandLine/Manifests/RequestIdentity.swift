import Crypto
import FoundationEssentials
import MusterAPI
import MusterCore

/// Stands for a set of tasks: two requests have the same identity if they have the same tasks, in whatever order.
///
/// The SHA-256 of each task is added up, so that a list of any length is identified without sorting or holding it.
struct RequestIdentity: Sendable {
    private var sum: [UInt64] = [0, 0, 0, 0]

    /// The identity of no tasks.
    init() {}

    /// Adds a task, with the options that are its own.
    mutating func add(_ task: TaskSpecification, fetch: FetchOptions?) {
        // Each text has its length before it, so that no two tasks have the same encoding.
        var text = ""
        func field(_ value: String) { text += "\(value.utf8.count):\(value)," }
        field(task.key)
        field(task.path.string)
        field(task.size.map(String.init) ?? "")
        field(String(task.priority))
        for source in task.sources { field(source.string) }
        for digest in task.digests { field("\(digest.algorithm.rawValue) \(digest.hexadecimal)") }
        for header in task.headers.sorted(by: { $0.key < $1.key }) { field("\(header.key): \(header.value)") }
        // Fields of later versions are added only if they are set, so that older requests keep their identity.
        if let type = task.contentType { field("contentType \(type)") }
        if let deadline = task.deadline { field("deadline \(deadline.milliseconds)") }
        if let fetch { field("fetch \(Self.canonical(fetch))") }
        add(text)
    }

    /// Adds what can't change once a group is created: its policy, and whether content codings are decoded.
    mutating func add(_ policy: TransferPolicy?, decodes: Bool) {
        if let policy { add("policy \(Self.canonical(policy)),") }
        if decodes { add("decode,") }
    }

    /// Adds how sources are asked, and the resolver of fresh URLs.
    mutating func add(_ fetch: FetchOptions?, _ resolver: Resolver?) {
        if let fetch { add("fetch \(Self.canonical(fetch)),") }
        if let resolver { add("resolver \(Self.canonical(resolver)),") }
    }

    private mutating func add(_ text: String) {
        for (index, byte) in SHA256.hash(data: Data(text.utf8)).enumerated() {
            // Byte by byte into four words; each word is added with overflow.
            let lane = index / 8
            sum[lane] &+= UInt64(byte) << UInt64(8 * (index % 8))
        }
    }

    /// A value as JSON whose fields are in alphabetical order: the same value always reads the same.
    private static func canonical(_ value: some Encodable) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return (try? encoder.encode(value)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    /// 64 bits of it in hexadecimal, as names of groups show it.
    var text: String {
        let digest = SHA256.hash(data: Data(sum.map { String($0, radix: 16) }.joined(separator: " ").utf8))
        return ContentDigest(algorithm: .sha256, bytes: digest).hexadecimal.prefix(16).description
    }
}
