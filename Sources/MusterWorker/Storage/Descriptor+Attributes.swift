import CLibisal
import Glibc

extension Descriptor {
    /// The value of an extended attribute. Throws ENODATA if there is none, and ERANGE if it has more than `limit` bytes.
    func attribute(_ name: String, limit: Int) throws(SystemError) -> [UInt8] {
        var value = [UInt8](repeating: 0, count: limit)
        let count = with { muster_fgetxattr($0, name, &value, limit) }
        guard count >= 0 else { throw .last }
        return Array(value.prefix(count))
    }

    /// Sets an extended attribute, new or existing. Of the rest of the file only the time of its last change of status
    /// (ctime) changes.
    func setAttribute(_ name: String, to value: [UInt8]) throws(SystemError) {
        guard with({ muster_fsetxattr($0, name, value, value.count, 0) }) == 0 else { throw .last }
    }
}
