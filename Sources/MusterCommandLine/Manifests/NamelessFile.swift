import Glibc
import MusterAPI
import SystemPackage

/// A temporary file that no other process can open, and that is gone as soon as its last descriptor is closed.
enum NamelessFile {
    /// Creates the file in a directory, open for reading and writing. The caller closes it.
    static func make(in directory: String) throws -> FileDescriptor {
        // The name can't be predicted; it is created exclusively, and removed at once.
        let name = FilePath(directory).appending(".muster-\(RandomToken.make())")
        let descriptor = try FileDescriptor.open(
            name,
            .readWrite,
            options: [.create, .exclusiveCreate, .noFollow, .closeOnExec],
            permissions: .ownerReadWrite
        )
        guard unlink(name.string) == 0 else {
            let reason = Errno(rawValue: errno)
            try? descriptor.close()
            throw reason
        }
        return descriptor
    }
}
