/// The parts of a line. If there is too little room, the least important parts are left out first. No part is ever cut, since a number
/// without its end is another number.
struct FittedLine {
    private struct Part {
        var text: String
        var columns: Int
        var importance: Int
    }

    private var parts: [Part] = []

    /// The text between two parts.
    static let gap = "  "

    /// A line without parts.
    init() {}

    /// Adds a part at the end.
    ///
    /// - Parameters:
    ///   - text: what is written; it may have colours.
    ///   - columns: how many columns it takes.
    ///   - importance: parts of the lowest importance are left out first; of equal ones, the last.
    mutating func add(_ text: String, columns: Int, importance: Int) {
        parts.append(Part(text: text, columns: columns, importance: importance))
    }

    /// How many columns all parts take.
    var columns: Int {
        parts.reduce(0) { $0 + $1.columns } + max(0, parts.count - 1) * Self.gap.count
    }

    /// The line in at most `width` columns; the most important part stays even if it is too long.
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
