import Glibc
public import SystemPackage

/// Third-party programs in Python that check Muster's output: `deploy/test.sh` installs them below `.build/python`.
public enum PythonPackages {
    /// The interpreter that has them: the one that `MUSTER_TEST_PYTHON` names, whether it is there or not, or the one in the
    /// build directory that the test bundle is in; nil if they were not installed.
    public static func interpreter() -> FilePath? {
        if let named = Environs.value("MUSTER_TEST_PYTHON") { return FilePath(named) }
        let starts = CommandLine.arguments.filter { $0.contains(".xctest") || $0.hasPrefix("/") }
        for start in starts + [ownExecutable()].compactMap({ $0 }) {
            var directory = FilePath(start).removingLastComponent()
            while !directory.isEmpty, directory.lastComponent != nil {
                let candidate = directory.appending("python/bin/python3")
                if access(candidate.string, X_OK) == 0 { return candidate }
                directory.removeLastComponent()
            }
        }
        return nil
    }

    private static func ownExecutable() -> String? {
        guard let resolved = realpath("/proc/self/exe", nil) else { return nil }
        defer { free(resolved) }
        return String(cString: resolved)
    }
}
