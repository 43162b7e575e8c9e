import SystemPackage

/// Reads a small file.
enum SmallFile {
    /// The bytes of a file.
    ///
    /// - Parameters:
    ///   - what: names the file in errors.
    ///   - limit: the most bytes that it may have.
    /// - Throws: `CommandFailure.usage` when it can't be read, or is longer.
    static func read(_ path: String, what: String, limit: Int) throws(CommandFailure) -> [UInt8] {
        do {
            let descriptor = try FileDescriptor.open(FilePath(path), .readOnly, options: .closeOnExec)
            return try descriptor.closeAfter {
                var content: [UInt8] = []
                var buffer = [UInt8](repeating: 0, count: 64 << 10)
                while content.count <= limit {
                    let count = try buffer.withUnsafeMutableBytes { try descriptor.read(into: $0) }
                    if count == 0 { return content }
                    content += buffer[..<count]
                }
                throw CommandFailure.usage("the \(what) \(path) is longer than \(limit) bytes")
            }
        } catch let failure as CommandFailure {
            throw failure
        } catch {
            throw .usage("the \(what) \(path) can't be read: \(error)")
        }
    }
}
