/// The relevant replies of an FTP server on the control connection so far (RFC 959 §4.2). libcurl offers no other way to
/// tell whether a size is the server's own statement.
struct FTPReplies {
    /// The code of the last complete reply, 0 before the first. 221 (goodbye) does not count: it comes after the end.
    private(set) var lastCode = 0
    /// The answer to SIZE (RFC 3659 §4), nil if the server gave none.
    private(set) var size: Int64?
    /// Whether the answer to SIZE was negative, as from servers that count in 32 bits: libcurl drops the sign, and cuts
    /// the file at that size.
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

    /// Whether the last reply is a temporary refusal (RFC 959 §4.2.1): the codes 4yz that are not about the network.
    var isBusy: Bool { [421, 450, 451].contains(lastCode) }
}
