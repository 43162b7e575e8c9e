import Glibc
public import SystemPackage

/// Programs that may or may not be installed.
public enum InstalledProgram {
    /// Where a program is; nil if it is not installed. This also searches the directories of servers, which the `PATH` of
    /// an ordinary user leaves out.
    public static func find(_ name: String) -> FilePath? {
        candidates(name).first { access($0.string, X_OK) == 0 }
    }

    /// All paths at which a program is looked for.
    static func candidates(_ name: String) -> [FilePath] {
        let directories = (Environs.value("PATH") ?? "").split(separator: ":").map(String.init)
        return (directories + ["/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin"]).map {
            FilePath($0).appending(name)
        }
    }
}
