import Glibc
public import SystemPackage

/// The descriptors that the process may have open at once.
public enum OpenDescriptors {
    /// How many of them are left to system libraries. The dispatch library ends the process when it can't open
    /// `/proc/<thread>/stat`, by which it looks at its own threads each second.
    public static let spare = 16

    /// The most descriptors that starting a program needs: two pipes, a second descriptor of one of them, and what tells
    /// of the program's start and end.
    private static let program = 12

    /// The current limit (the soft one of RLIMIT_NOFILE); nil if the system does not tell it.
    public static var limit: Int? {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return nil }
        return Int(clamping: limit.rlim_cur)
    }

    /// The result of a call that opens a descriptor, but not one of the last: that one is closed again, and the call has
    /// failed with EMFILE. The system gives out the lowest free number, so a high one means that few are left.
    ///
    /// - Parameters:
    ///   - number: the new descriptor; a negative one is returned as it is, with its `errno`.
    ///   - limit: how many descriptors the process may have open.
    public static func sparing(_ number: Int32, limit: Int? = OpenDescriptors.limit) -> Int32 {
        guard number >= 0, let limit, Int(number) >= limit - spare else { return number }
        close(number)
        errno = EMFILE
        return -1
    }

    /// Throws the system's error if there are too few descriptors to start a program with pipes. Subprocess would end
    /// this process when it gets only some of them. Those that are left to system libraries don't count, and are not
    /// taken here, not even for a moment.
    ///
    /// - Parameter limit: how many descriptors the process may have open.
    public static func checkRoomForProgram(limit: Int? = OpenDescriptors.limit) throws(Errno) {
        var held: [EventDescriptor] = []
        for _ in 0..<program {
            let next = try EventDescriptor(.flag)
            if let limit, Int(next.descriptor) >= limit - spare { throw .tooManyOpenFiles }
            held.append(next)
        }
    }
}
