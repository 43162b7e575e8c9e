/// The head that a server of plain files would send if it spoke HTTP (RFC 9110 §14, §15).
struct FileHead: Hashable {
    /// What the server tells about a file.
    struct Facts: Hashable {
        /// The whole size in bytes, nil if the server does not tell it.
        var size: Int64?
        /// Seconds since 1970, nil if the server does not tell it.
        var modificationTime: Int64?
    }

    /// The status code.
    let status: Int
    /// Content-Length, Content-Range and Last-Modified, as far as they apply.
    let headers: HeaderList
    /// The length of the body in bytes, nil if only the end of the body tells.
    let length: Int64?
    /// Whether the server would send bytes from a position that the head does not state: none may be delivered.
    let isWithoutBody: Bool

    /// The head for a file that the server sends, or would send.
    ///
    /// HTTP cannot describe a part of a file whose size is unknown, so the status is 200, as from a server that ignores
    /// Range (range contract, row 1).
    static func file(_ facts: Facts, range: RangeSpec?) -> FileHead {
        guard let range, let size = facts.size else {
            return FileHead(200, facts, length: facts.size, isWithoutBody: (range?.first ?? 0) > 0)
        }
        guard range.first < size else { return unsatisfiable(size: size) }
        let last = min(range.last ?? .max, size - 1)
        let stated = HeaderField("Content-Range", "bytes \(range.first)-\(last)/\(size)")
        return FileHead(206, facts, [stated], length: last - range.first + 1)
    }

    /// The head of a server that cannot start in the middle of a file, but would send the whole file.
    static func rangeIgnored(_ facts: Facts) -> FileHead {
        FileHead(200, facts, length: facts.size, isWithoutBody: true)
    }

    /// The head for everything from a position to the end, of unknown length.
    static let rest = FileHead(206, Facts(), length: nil)

    /// 416 (RFC 9110 §15.5.17): the range begins at or behind the end.
    static func unsatisfiable(size: Int64?) -> FileHead {
        let stated = size.map { HeaderField("Content-Range", "bytes */\($0)") }
        return FileHead(416, Facts(), stated.map { [$0] } ?? [], length: 0)
    }

    /// The head of a refusal: 401, 403, 404 or 503.
    static func refusal(_ status: Int) -> FileHead {
        FileHead(status, Facts(), length: 0)
    }

    private init(
        _ status: Int,
        _ facts: Facts,
        _ fields: [HeaderField] = [],
        length: Int64?,
        isWithoutBody: Bool = false
    ) {
        var headers = HeaderList(fields)
        if let length { headers.append("Content-Length", String(length)) }
        if let date = facts.modificationTime.flatMap(HTTPDate.text) { headers.append("Last-Modified", date) }
        self.status = status
        self.headers = headers
        self.length = length
        self.isWithoutBody = isWithoutBody
    }
}
