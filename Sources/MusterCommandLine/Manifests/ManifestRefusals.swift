import MusterAPI
import MusterCore

/// The refused lines of a manifest; the first of them with their reasons.
struct ManifestRefusals: Sendable {
    /// How many lines are named.
    private static let most = 10

    /// The lines that are named.
    private var named: [InputRefusal] = []
    /// How many lines are refused.
    private(set) var count = 0

    /// Adds a refused line.
    mutating func add(_ refusal: InputRefusal) {
        count += 1
        if named.count < Self.most { named.append(refusal) }
    }

    /// The document of the first refusal; a coordinator reports only that one, too.
    var problem: Problem? {
        named.first.map {
            Problem(.invalidRequest, $0.reason, pointer: $0.pointer.isEmpty ? nil : $0.pointer, line: $0.line)
        }
    }

    /// The message about them, each reason once; `manifest` is the manifest's name in messages.
    func message(manifest: String) -> String {
        var lines: [String: [Int]] = [:]
        var reasons: [String] = []
        for refusal in named {
            let reason =
                (refusal.pointer.isEmpty ? "" : ", field \(InputRefusal.field(refusal.pointer))")
                + ": \(refusal.reason)"
            if lines[reason] == nil { reasons.append(reason) }
            lines[reason, default: []] += refusal.line.map { [$0] } ?? []
        }
        let texts = reasons.map { reason in
            let numbers = lines[reason, default: []].map(String.init)
            return "line\(numbers.count == 1 ? "" : "s") \(numbers.joined(separator: ", "))\(reason)"
        }
        guard count > 1 else { return (["Refused: \(manifest)"] + texts).joined(separator: ", ") }
        let rest = count - named.count
        let more = rest > 0 ? ["and \(rest) more line\(rest == 1 ? "" : "s")"] : []
        return (["Refused: \(manifest), \(count) lines:"] + (texts + more).map { "  \($0)" }).joined(separator: "\n")
    }
}
