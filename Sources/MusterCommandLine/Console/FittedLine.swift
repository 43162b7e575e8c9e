/// Parts that stand in a line as long as there is room: the least important ones are left out first, and none is ever cut, since a
/// number without its end is another number.
struct FittedLine {
    private struct Part {
        var text: String
        var columns: Int
        var importance: Int
    }

    private var parts: [Part] = []

    /// What stands between two parts.
    static let gap = "  "

    /// A line without parts.
    init() {}

    /// Adds a part at the end.
    ///
    /// - Parameters:
    ///   - text: what is written; it may have colours.
    ///   - columns: how many columns it takes.
    ///   - importance: the parts of the lowest are left out first; of the same, the last one.
    mutating func add(_ text: String, columns: Int, importance: Int) {
        parts.append(Part(text: text, columns: columns, importance: importance))
    }

    /// How many columns all parts take.
    var columns: Int {
        parts.reduce(0) { $0 + $1.columns } + max(0, parts.count - 1) * Self.gap.count
    }

    /// The line in at most `width` columns; the most important part stands in it even if that is too long.
    func text(width: Int) -> String {
        var fitted = self
        while fitted.columns > width, fitted.parts.count > 1 {
            let least = fitted.parts.indices.reversed().min {
                fitted.parts[$0].importance < fitted.parts[$1].importance
            }
            if let least { fitted.parts.remove(at: least) }
        }
        return fitted.parts.map(\.text).joined(separator: Self.gap)
    }
}
