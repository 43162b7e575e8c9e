import MusterCommandLine

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// The executable: everything is in MusterCommandLine, where tests can reach it.
@main
enum Main {
    static func main() async {
        exit(await MusterProgram.main(Array(CommandLine.arguments.dropFirst())))
    }
}
