import MusterCore

/// A check of header field names, which are compared without regard to case (RFC 9110 §5.1): two names that differ only in case would be a
/// single field with two values, and it would be undefined which value is sent.
enum HeaderNames {
    /// Throws at the first name that occurs twice.
    ///
    /// - Parameters:
    ///   - pointer: the JSON pointer to the names.
    ///   - others: names from another place that go into the same requests.
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
