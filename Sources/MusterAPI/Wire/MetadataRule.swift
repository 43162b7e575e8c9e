import FoundationEssentials
import MusterCore

/// The rules for metadata of groups and tasks.
enum MetadataRule {
    /// Throws when the JSON of `metadata` is longer than `Limits.metadataBytes`, or when it contains U+0000 anywhere:
    /// PostgreSQL's `jsonb` can't store that.
    static func check(_ metadata: JSONValue) throws(InputRefusal) {
        let size = (try? JSONEncoder().encode(metadata).count) ?? .max
        guard size <= Limits.metadataBytes else {
            throw InputRefusal(pointer: "/metadata", reason: "is longer than \(Limits.metadataBytes) bytes")
        }
        guard !hasNull(metadata) else {
            throw InputRefusal(pointer: "/metadata", reason: "must not contain U+0000, which can't be stored")
        }
    }

    private static func hasNull(_ value: JSONValue) -> Bool {
        switch value {
        case .null, .bool, .integer, .number: false
        case .string(let text): text.utf8.contains(0)
        case .array(let values): values.contains(where: hasNull)
        case .object(let fields): fields.contains { $0.key.utf8.contains(0) || hasNull($0.value) }
        }
    }
}
