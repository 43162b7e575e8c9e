import Glibc

/// Computes checksums of files, to detect whether a file is still what was put there.
public enum FileChecksum {
    /// Reads a file once, and yields to other tasks between its pieces.
    ///
    /// - Returns: CRC32C of its content.
    /// - Throws: the error of opening or reading it; `CancellationError` if the task is cancelled.
    public static func crc32c(of path: String) async throws -> UInt32 {
        let file = Descriptor(owning: try Kernel.patiently { open(path, O_RDONLY | O_CLOEXEC) })
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: ContentReader.pieceBytes, alignment: 64)
        defer { buffer.deallocate() }
        var (checksum, offset) = (CRC32C.empty, Int64(0))
        while true {
            try Task.checkCancellation()
            let count = try file.read(into: buffer, at: offset)
            if count == 0 { return checksum }
            checksum = CRC32C.extend(checksum, UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            offset += Int64(count)
            await Task.yield()
        }
    }
}
