extension DestinationPath {
    /// The longest ending of a name that is kept as it is when a number goes before it, in bytes with the dot.
    private static let extensionBytes = 32

    /// The path with a number in its name: `a/name (2).ext` for `a/name.ext`, `a/name (2)` where there is no ending.
    ///
    /// The name is cut, at the end of a Unicode scalar, where it would become too long for a file system or the path too long for us.
    ///
    /// - Returns: `nil` when nothing of the name would be left.
    public func numbered(_ number: Int) -> DestinationPath? {
        // At bytes: a slash or a dot with a combining mark after it is no character of its own.
        let bytes = string.utf8
        let nameStart = bytes.lastIndex(of: UInt8(ascii: "/")).map { bytes.index(after: $0) } ?? bytes.startIndex
        let directory = String(decoding: bytes[..<nameStart], as: UTF8.self)
        let name = bytes[nameStart...]
        var stemEnd = name.endIndex
        // A dot in front makes a hidden file, not an ending.
        if let dot = name.lastIndex(of: UInt8(ascii: ".")), dot > name.startIndex,
            name[dot...].count <= Self.extensionBytes
        {
            stemEnd = dot
        }
        let ending = " (\(number))" + String(decoding: name[stemEnd...], as: UTF8.self)
        var stem = String(decoding: name[..<stemEnd], as: UTF8.self).unicodeScalars
        let room = min(Limits.pathComponentBytes, Limits.pathBytes - directory.utf8.count) - ending.utf8.count
        while String(stem).utf8.count > max(0, room) { stem.removeLast() }
        guard !stem.isEmpty else { return nil }
        return try? DestinationPath(validating: directory + String(stem) + ending)
    }
}
