import Glibc
import MusterCommandLine

/// The executable: everything is in MusterCommandLine, where tests can reach it.
@main
enum Main {
    static func main() async {
        exit(await MusterProgram.main(Array(CommandLine.arguments.dropFirst())))
    }
}
