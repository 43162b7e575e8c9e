/// What an FTP server has said so far on the control connection (RFC 959 §4.2), as far as it matters: libcurl tells no other
/// way whether a size is the server's own statement.
struct FTPReplies {
    /// The code of the last complete reply, 0 before the first; the goodbye does not count, which comes after the end.
    private(set) var lastCode = 0
    /// The answer to SIZE (RFC 3659 §4), nil if the server gave none.
    private(set) var size: Int64?
    /// Whether that was a negative number, as servers state that count in 32 bits: libcurl leaves the sign out, and cuts the file there.
    private(set) var statesNegativeSize = false
    /// Whether the data connection was agreed on. libcurl asks for the modification time before that and for the size
    /// after it, and both are answered by 213.
    private var isPassive = false

    /// Takes one line.
    mutating func take(_ line: UnsafeRawBufferPointer) {
        // "213 5" ends a reply, "213-5" goes on.
        guard line.count >= 4, line[3] == 0x20, let code = decimal(line[..<3]) else { return }
        if code != 221 { lastCode = Int(code) }
        switch code {
        case 227, 229: isPassive = true
        case 213 where isPassive:
            let stated = trimmed(line[4...])
            size = decimal(stated)
            statesNegativeSize = stated.first == UInt8(ascii: "-")
        default: break
        }
    }

    /// Whether the server said that it cannot now, but might later (RFC 959 §4.2.1, the codes 4yz that are not about the
    /// network).
    var isBusy: Bool { [421, 450, 451].contains(lastCode) }
}
