/// The media types that a client accepts, each with its weight (RFC 9110 §12.5.1).
struct AcceptField: Sendable {
    /// The weights from 0 to 1, by the range of types in lower case, such as `text/*`.
    private let weights: [String: Double]

    /// Reads the Accept fields of a request.
    init(_ fields: [String]) {
        var weights: [String: Double] = [:]
        for range in fields.flatMap({ $0.split(separator: ",") }) {
            let parts = range.filter { $0 != " " && $0 != "\t" }.lowercased().split(separator: ";")
            guard let name = parts.first else { continue }
            let quality = parts.dropFirst().first { $0.hasPrefix("q=") }.flatMap { Double($0.dropFirst(2)) } ?? 1
            weights[String(name)] = (0...1).contains(quality) ? quality : 1
        }
        self.weights = weights
    }

    /// Whether the client names a type, and accepts it at least as gladly as another one.
    func prefers(_ type: String, to other: String) -> Bool {
        guard let weight = weights[type], weight > 0 else { return false }
        return weight >= self.weight(of: other)
    }

    /// The weight of the most specific range with the type; 0 if there is none.
    private func weight(of type: String) -> Double {
        weights[type] ?? weights["\(type.prefix { $0 != "/" })/*"] ?? weights["*/*"] ?? 0
    }
}
