import MusterCore

/// Reads a file in bounded pieces, on the calling thread.
struct ContentReader {
    /// The most bytes of a file that are held at once: a piece fits the processor's cache, so that its consumer finds it there.
    static let pieceBytes = 256 << 10

    private let descriptor: Descriptor

    /// A reader of an open file.
    init(_ descriptor: Descriptor) {
        self.descriptor = descriptor
    }

    /// Hands the bytes of `range` to `consume`, in order.
    ///
    /// - Parameters:
    ///   - file: the file's name, for the error.
    ///   - mayContinue: asked before each piece.
    /// - Returns: whether all of it was read; `false` if `mayContinue` returned `false`.
    /// - Throws: `partLost` when the file ends before the range does.
    func read(
        _ range: ByteRange,
        of file: @autoclosure () -> String,
        while mayContinue: () -> Bool,
        _ consume: (UnsafeRawBufferPointer) -> Void
    ) throws(StorageError) -> Bool {
        guard !range.isEmpty else { return true }
        let capacity = Int(min(Int64(Self.pieceBytes), range.count))
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 64)
        defer { buffer.deallocate() }
        var offset = range.start
        while offset < range.end {
            guard mayContinue() else { return false }
            let wanted = Int(min(Int64(capacity), range.end - offset))
            let count: Int
            do {
                count = try descriptor.read(
                    into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]),
                    at: offset
                )
            } catch {
                throw error.inSink("reading \(file()) at \(offset)")
            }
            guard count == wanted else {
                throw .partLost(.init("\(file()) ends at \(offset + Int64(count)), before \(range.end)"))
            }
            consume(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            offset += Int64(count)
        }
        return true
    }
}
