import MusterCore

/// The names of header fields are compared without regard to case (RFC 9110 §5.1): two of them that differ in case alone would
/// be one field with two values, and nobody could tell which one is sent.
enum HeaderNames {
    /// Throws at the first name that is there twice.
    ///
    /// - Parameters:
    ///   - pointer: where the names stand.
    ///   - others: names that stand elsewhere and go into the same requests.
    static func check(
        _ names: some Sequence<String>, at pointer: String,
        besides others: some Sequence<String> = EmptyCollection<String>()
    ) throws(InputRefusal) {
        var seen = Set(others.map { $0.lowercased() })
        for name in names.sorted() where !seen.insert(name.lowercased()).inserted {
            throw InputRefusal(
                pointer: "\(pointer)/\(InputRefusal.pointerPart(name))",
                reason: "this header is given twice; names that differ in case only are the same (RFC 9110 §5.1)")
        }
    }
}
