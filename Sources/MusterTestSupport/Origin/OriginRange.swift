/// A Range field (RFC 9110 §14.2), as far as an origin with one range per response understands it.
enum OriginRange: Sendable, Hashable {
    /// No field, or one that is not understood, which is to be ignored (§14.2).
    case none
    /// `bytes=a-` (last is nil) or `bytes=a-b`, both inclusive.
    case from(Int64, last: Int64?)
    /// `bytes=-n`.
    case suffix(Int64)
    /// Several ranges. This origin answers them with the whole file, as it may (§14.2).
    case several

    init(_ field: String?) {
        guard let field, let equals = field.firstIndex(of: "="), field[..<equals].lowercased() == "bytes" else {
            self = .none
            return
        }
        let set = field[field.index(after: equals)...]
        guard !set.contains(",") else {
            self = .several
            return
        }
        let ends = set.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        guard ends.count == 2 else {
            self = .none
            return
        }
        switch (Self.number(ends[0]), Self.number(ends[1])) {
        case (let first?, let last?): self = last >= first ? .from(first, last: last) : .none
        case (let first?, nil): self = ends[1].isEmpty ? .from(first, last: nil) : .none
        case (nil, let length?): self = ends[0].isEmpty ? .suffix(length) : .none
        case (nil, nil): self = .none
        }
    }

    /// Where it starts, if that does not depend on the size.
    var start: Int64? {
        switch self {
        case .from(let first, _): first
        case .none, .suffix, .several: nil
        }
    }

    /// What it selects.
    enum Selection: Sendable, Hashable {
        /// Everything: 200.
        case whole
        /// These bytes: 206.
        case part(Range<Int64>)
        /// Nothing: 416.
        case unsatisfiable
    }

    /// What it selects of a file of `size` bytes (§14.1.2, §15.5.17).
    func selection(size: Int64) -> Selection {
        switch self {
        case .none, .several:
            return .whole
        case .from(let first, let last):
            guard first < size else { return .unsatisfiable }
            return .part(first..<min(size, (last ?? size - 1) + 1))
        case .suffix(let length):
            guard length > 0, size > 0 else { return .unsatisfiable }
            return .part(max(0, size - length)..<size)
        }
    }

    /// Digits only: `Int64` would take a sign too.
    private static func number(_ text: Substring) -> Int64? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
        return Int64(text) ?? Int64.max - 1
    }
}
