import Glibc
public import SystemPackage

/// The programs that a machine may have or not have.
public enum InstalledProgram {
    /// Where a program is; nil if it is not installed. The directories of servers are looked through too, which the `PATH`
    /// of an ordinary user leaves out.
    public static func find(_ name: String) -> FilePath? {
        candidates(name).first { access($0.string, X_OK) == 0 }
    }

    /// Everywhere that is looked.
    static func candidates(_ name: String) -> [FilePath] {
        let directories = (Environs.value("PATH") ?? "").split(separator: ":").map(String.init)
        return (directories + ["/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin"]).map {
            FilePath($0).appending(name)
        }
    }
}
