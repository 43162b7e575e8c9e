import Glibc
import SystemPackage

/// A pipe that no child inherits by accident.
enum CloseOnExecPipe {
    static func open() throws -> (readEnd: FileDescriptor, writeEnd: FileDescriptor) {
        let pipe = try FileDescriptor.pipe()
        for end in [pipe.readEnd, pipe.writeEnd] {
            guard fcntl(end.rawValue, F_SETFD, FD_CLOEXEC) == 0 else { throw Errno(rawValue: errno) }
        }
        return (pipe.readEnd, pipe.writeEnd)
    }
}

/// The standard input of a process.
struct InputFile: Sendable {
    let readEnd: FileDescriptor
    /// Kept open until the process has ended, so that it sees no end of file.
    let writeEnd: FileDescriptor?

    static func open(_ input: TestProcess.Input) throws -> InputFile {
        switch input {
        case .none:
            let descriptor = try FileDescriptor.open("/dev/null", .readOnly, options: .closeOnExec)
            return InputFile(readEnd: descriptor, writeEnd: nil)
        case .text(let text):
            // A file without a name rather than a pipe, since a pipe would have to be fed.
            let path = FilePath("/tmp/mt-input-\(String(UInt64.random(in: .min ... .max), radix: 36))")
            let descriptor = try FileDescriptor.open(
                path,
                .readWrite,
                options: [.create, .exclusiveCreate, .closeOnExec],
                permissions: .ownerReadWrite
            )
            guard unlink(path.string) == 0 else { throw Errno(rawValue: errno) }
            try descriptor.writeAll(text.utf8)
            try descriptor.seek(offset: 0, from: .start)
            return InputFile(readEnd: descriptor, writeEnd: nil)
        case .open:
            let pipe = try CloseOnExecPipe.open()
            return InputFile(readEnd: pipe.readEnd, writeEnd: pipe.writeEnd)
        }
    }
}
