extension DestinationPath {
    /// The longest extension that is kept behind the number, in bytes with the dot.
    private static let extensionBytes = 32

    /// The path with a number in its name: `a/name (2).ext` for `a/name.ext`, `a/name (2)` if there is no extension.
    ///
    /// The name is cut, at the end of a Unicode scalar, if it would become too long for a file system, or the path longer than
    /// `Limits.pathBytes`.
    ///
    /// - Returns: `nil` when nothing of the name would be left.
    public func numbered(_ number: Int) -> DestinationPath? {
        let (nameStart, stemEnd) = nameParts
        let directory = String(decoding: string.utf8[..<nameStart], as: UTF8.self)
        let name = string.utf8[nameStart...]
        let ending = " (\(number))" + String(decoding: name[stemEnd...], as: UTF8.self)
        var stem = String(decoding: name[..<stemEnd], as: UTF8.self).unicodeScalars
        let room = min(Limits.pathComponentBytes, Limits.pathBytes - directory.utf8.count) - ending.utf8.count
        while String(stem).utf8.count > max(0, room) { stem.removeLast() }
        guard !stem.isEmpty else { return nil }
        return try? DestinationPath(validating: directory + String(stem) + ending)
    }

    /// The number in the name, as ``numbered(_:)`` writes one: 2 for `a/name (2).ext`; `nil` if there is none.
    public var number: Int? {
        let (nameStart, stemEnd) = nameParts
        let stem = string.utf8[nameStart..<stemEnd]
        guard stem.last == UInt8(ascii: ")"), let open = stem.lastIndex(of: UInt8(ascii: "(")), open > stem.startIndex,
            stem[stem.index(before: open)] == UInt8(ascii: " ")
        else { return nil }
        let digits = stem[stem.index(after: open)...].dropLast()
        guard digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else { return nil }
        return Int(String(decoding: digits, as: UTF8.self))
    }

    /// Where the name begins, and where its extension does.
    private var nameParts: (start: String.Index, stemEnd: String.Index) {
        // Looks at bytes: a slash or a dot with a combining mark after it is not a character of its own.
        let bytes = string.utf8
        let start = bytes.lastIndex(of: UInt8(ascii: "/")).map { bytes.index(after: $0) } ?? bytes.startIndex
        let name = bytes[start...]
        // A leading dot marks a hidden file, not an extension.
        if let dot = name.lastIndex(of: UInt8(ascii: ".")), dot > name.startIndex,
            name[dot...].count <= Self.extensionBytes
        {
            return (start, dot)
        }
        return (start, bytes.endIndex)
    }
}
