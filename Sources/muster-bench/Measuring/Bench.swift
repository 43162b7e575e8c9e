import FoundationEssentials
import MusterTestSupport
import SystemPackage

/// The circumstances of a run: the benchmarked program, the directory, and the number of rounds.
struct Bench: Sendable {
    /// The `muster` executable.
    let muster: FilePath
    /// This program, which provides the floors as commands.
    let own: FilePath
    /// How often everything is measured.
    let rounds: Int
    /// How often everything is done before that, without being measured.
    let warmUps: Int
    /// Whether all benchmarks are as small as possible.
    let isQuick: Bool
    /// The directory below which all files are made.
    let place: FilePath

    /// Prints a line of progress to standard error.
    func say(_ line: String) {
        _ = try? FileDescriptor.standardError.writeAll("\(line)\n".utf8)
    }

    /// A new directory below `place`, which is removed when the object is released.
    func directory() throws -> TemporaryDirectory { try TemporaryDirectory(in: place) }

    /// Makes a directory and its parents.
    static func make(_ path: FilePath) throws {
        try FileManager.default.createDirectory(atPath: path.string, withIntermediateDirectories: true)
    }

    /// Removes a directory with everything in it.
    static func remove(_ path: FilePath) throws {
        try FileManager.default.removeItem(atPath: path.string)
    }

    /// Removes the files that a turn has fetched, if they take much room. Many small files stay until the end of all measurements: after a
    /// deletion a file system may be slow to create files, as ext4 without a journal is for minutes, and the next turns would measure that.
    static func clear(_ path: FilePath, files count: Int, size: Int64) throws {
        if Int64(count) * size > 256 << 20 { try remove(path) }
    }

    /// Writes a file.
    static func write(_ bytes: some Sequence<UInt8>, to path: FilePath) throws {
        let file = try FileDescriptor.open(
            path, .writeOnly, options: [.create, .truncate, .closeOnExec],
            permissions: [.ownerReadWrite, .groupRead, .otherRead])
        _ = try file.closeAfter { try file.writeAll(bytes) }
    }

    /// Waits until the whole file system of a directory is on storage, as `sync -f` does; not in a quick run.
    func flush(_ directory: FilePath) async throws {
        guard !isQuick else { return }
        guard let program = InstalledProgram.find("sync") else { throw BenchFailure("there is no sync") }
        _ = try await TimedCommand(program: program, arguments: ["-f", directory.string]).run()
    }

    /// Throws unless a directory has `count` files of `size` bytes each.
    static func check(_ directory: FilePath, files count: Int, size: Int64) throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: directory.string)
        guard names.count == count else {
            throw BenchFailure("\(names.count) files are there in place of \(count)")
        }
        for name in names {
            let found = try directory.appending(name).stat().size
            guard Int64(found) == size else {
                throw BenchFailure("\(name) has \(found) bytes in place of \(size)")
            }
        }
    }
}

extension Duration {
    /// The duration in seconds.
    var seconds: Double { self / .seconds(1) }
}
