import Logging

/// The keys of everything that the worker logs. Values are never header fields, tokens, or queries of URLs.
enum WorkerMetadataKey: String {
    case worker
    case session
    case sink
    case path
    case chunk
    case epoch
    case task
    case kind
    case reason
    case offset
    case bytes
    case leases
    case host
    case slots
    case used
    case limit
}

extension Logger.Metadata {
    /// Metadata under the worker's own keys.
    init(_ facts: [WorkerMetadataKey: String]) {
        self.init()
        for (key, value) in facts { self[key.rawValue] = .string(value) }
    }
}
