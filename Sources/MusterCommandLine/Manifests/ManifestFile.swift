import FoundationEssentials
import Glibc
import MusterCore
import SystemPackage

/// A manifest that can be read more than once: it is checked as a whole before anything is sent.
///
/// What can be read only once, standard input or a pipe, is copied to a nameless temporary file first, so that a
/// manifest of any length is never held in memory.
final class ManifestFile: Sendable {
    /// The manifest's name in messages.
    let name: String
    private let descriptor: FileDescriptor

    private init(_ descriptor: FileDescriptor, name: String) {
        self.descriptor = descriptor
        self.name = name
    }

    deinit {
        // It was only read, and a failing close releases the descriptor all the same.
        try? descriptor.close()
    }

    /// Opens the manifest at a path; `-` is standard input.
    ///
    /// - Parameter temporaryDirectory: where the copy goes if one is needed.
    /// - Throws: `CommandFailure.usage` when it can't be read, or is in UTF-16.
    static func open(_ path: String, temporaryDirectory: String) throws(CommandFailure) -> ManifestFile {
        let shown = path == "-" ? "on standard input" : path
        do {
            let file = try opened(path, temporaryDirectory: temporaryDirectory)
            guard let encoding = otherEncoding(try file.read(at: 0)) else { return file }
            let source = path == "-" ? "" : " \(ShellWord(path))"
            throw CommandFailure.usage(
                "the manifest \(shown) is in UTF-16, and must be in UTF-8; convert it first: "
                    + "iconv -f \(encoding) -t UTF-8\(source)")
        } catch let failure as CommandFailure {
            throw failure
        } catch {
            throw .usage("the manifest \(shown) can't be read: \(error)")
        }
    }

    /// The name of another encoding than UTF-8 that a text begins in; `nil` if it may be UTF-8.
    private static func otherEncoding(_ text: [UInt8]) -> String? {
        guard text.count > 1 else { return nil }
        switch (text[0], text[1]) {
        case (0xff, 0xfe), (0xfe, 0xff): return "UTF-16"
        // Without a mark every other byte of ASCII is 0.
        case (1..., 0): return "UTF-16LE"
        case (0, 1...): return "UTF-16BE"
        default: return nil
        }
    }

    private static func opened(_ path: String, temporaryDirectory: String) throws -> ManifestFile {
        if path == "-" { return try copy(of: .standardInput, name: "standard input", in: temporaryDirectory) }
        let file = ManifestFile(
            try FileDescriptor.open(FilePath(path), .readOnly, options: .closeOnExec), name: path)
        var status = stat()
        guard fstat(file.descriptor.rawValue, &status) == 0 else { throw Errno(rawValue: errno) }
        switch status.st_mode & S_IFMT {
        case S_IFREG: return file
        case S_IFDIR: throw Errno.isDirectory
        default: return try copy(of: file.descriptor, name: path, in: temporaryDirectory)
        }
    }

    /// The byte order mark in UTF-8, with which some editors begin a text.
    private static let mark: [UInt8] = [0xef, 0xbb, 0xbf]

    /// Reads the next bytes at an offset; empty at the end. A byte order mark reads as blanks.
    func read(at offset: Int64) throws -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        let count = try buffer.withUnsafeMutableBytes { try descriptor.read(fromAbsoluteOffset: offset, into: $0) }
        buffer.removeLast(buffer.count - count)
        if offset == 0, buffer.starts(with: Self.mark) {
            buffer.replaceSubrange(..<Self.mark.count, with: Self.mark.map { _ in UInt8(ascii: " ") })
        }
        return buffer
    }

    /// How long it is, in bytes.
    func size() throws -> Int64 {
        var status = stat()
        guard fstat(descriptor.rawValue, &status) == 0 else { throw Errno(rawValue: errno) }
        return Int64(status.st_size)
    }

    private static func copy(of source: FileDescriptor, name: String, in directory: String) throws -> ManifestFile {
        let target = try NamelessFile.make(in: directory)
        let file = ManifestFile(target, name: name)
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = try buffer.withUnsafeMutableBytes { try source.read(into: $0) }
            if count == 0 { return file }
            try target.writeAll(buffer[..<count])
        }
    }
}
