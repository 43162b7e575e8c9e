import Crypto
public import SystemPackage

/// Digests of files, in lower-case hexadecimal.
public enum FileDigest {
    /// The SHA-256 of a file, read in pieces.
    public static func sha256(_ path: FilePath) throws -> String {
        let descriptor = try FileDescriptor.open(path, .readOnly, options: .closeOnExec)
        return try descriptor.closeAfter {
            var hash = SHA256()
            var buffer = [UInt8](repeating: 0, count: 1 << 20)
            while true {
                let count = try buffer.withUnsafeMutableBytes { try descriptor.read(into: $0) }
                if count == 0 { return hexadecimal(hash.finalize()) }
                buffer.withUnsafeBytes { hash.update(bufferPointer: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
            }
        }
    }

    /// The SHA-256 of bytes.
    public static func sha256(_ bytes: [UInt8]) -> String {
        hexadecimal(SHA256.hash(data: bytes))
    }

    /// Bytes as lower-case hexadecimal digits.
    static func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }
}
