import Testing

@testable import MusterCommandLine

/// The help texts are part of what people and scripts rely on: a change is meant, or it shows here.
@Suite("Help for those who run workers and those who wait")
struct HelpOfWorkersTests {
    @Test func theHelpOfWork() {
        #expect(
            MusterProgram.help("work", columns: 80) == """
                OVERVIEW: Runs a worker. Run as many as you like.

                A worker fetches for the sinks that it is given, and for no others. The sink
                that groups use when they name none is called default. SIGTERM lets it give
                back what it holds and end.

                The token is taken from MUSTER_WORKER_TOKEN, or else from MUSTER_TOKEN.

                Examples:
                  muster work --sink default=/srv/files
                  muster work --server http://a:7300,http://b:7300 --name rack3-host7 --sink
                default=/mnt/files --slots 64

                USAGE: muster work [--server <url,...>] [--name <name>] [--sink <name=dir>] ... [--slots <n>]

                OPTIONS:
                  --worker-token <token>  The workers' token. Better set MUSTER_WORKER_TOKEN.
                  --name <name>           The worker's name, unique in the fleet. (MUSTER_NAME;
                                          default: the host's name and the process id)
                  --sink <name=dir>       A sink and its directory; may be repeated.
                                          (MUSTER_SINK, separated by commas)
                  --slots <n>             Transfers at once, 1 to 1024. (MUSTER_SLOTS; default:
                                          16)
                  --secret-variable <name>
                                          An environment variable that groups may name in
                                          secrets; may be repeated. Only needed where the
                                          coordinator listens beyond its machine.
                                          (MUSTER_SECRET_VARIABLE, separated by commas)
                  --secret-directory <dir>
                                          The directory below which groups may name files of
                                          secrets, keys and certificates. Only needed where the
                                          coordinator listens beyond its machine.
                                          (MUSTER_SECRET_DIRECTORY)
                  --server <url>          Base URL of the coordinator, or several, separated by
                                          commas. (MUSTER_SERVER; default:
                                          http://127.0.0.1:7300)
                  --token <token>         The token, if the coordinator asks for one. Better
                                          set MUSTER_TOKEN: arguments can be seen by everybody.
                  --json                  Print the result as JSON on standard output, and
                                          nothing else there. (MUSTER_JSON)
                  --config <file>         A JSON file with values for options. (MUSTER_CONFIG)
                  --log-level <level>     What is logged on standard error: trace, debug, info,
                                          notice, warning, error, critical. (MUSTER_LOG_LEVEL)
                  --version               Show the version.
                  -h, --help              Show help information.
                """
        )
    }

    @Test func theHelpOfWait() {
        #expect(
            MusterProgram.help("wait", columns: 80) == """
                OVERVIEW: Waits until a group is done, and ends with the exit code that says
                how.

                Exit codes: 0 every task succeeded; 1 at least one failed; 4 the timeout
                passed; 5 the group was cancelled.

                Example:
                  muster wait nightly --timeout 2h && start-the-next-step

                USAGE: muster wait <group> [--timeout <duration>]

                ARGUMENTS:
                  <group>                 The group's name.

                OPTIONS:
                  --timeout <duration>    How long to wait at the most; for ever if absent.
                                          (MUSTER_TIMEOUT)
                  --server <url>          Base URL of the coordinator, or several, separated by
                                          commas. (MUSTER_SERVER; default:
                                          http://127.0.0.1:7300)
                  --token <token>         The token, if the coordinator asks for one. Better
                                          set MUSTER_TOKEN: arguments can be seen by everybody.
                  --json                  Print the result as JSON on standard output, and
                                          nothing else there. (MUSTER_JSON)
                  --config <file>         A JSON file with values for options. (MUSTER_CONFIG)
                  --log-level <level>     What is logged on standard error: trace, debug, info,
                                          notice, warning, error, critical. (MUSTER_LOG_LEVEL)
                  --version               Show the version.
                  -h, --help              Show help information.
                """
        )
    }

    @Test func theHelpOfStatus() {
        #expect(
            MusterProgram.help("status", columns: 80) == """
                OVERVIEW: Shows all groups, or one of them in detail.

                With --watch it goes on showing until the group is done, or until it is
                interrupted. With --json --watch each look at a group is a line of its own.

                Examples:
                  muster status
                  muster status nightly --watch
                  muster status nightly --json

                USAGE: muster status [<group>] [--watch]

                ARGUMENTS:
                  <group>                 The group's name; all groups if absent.

                OPTIONS:
                  --watch                 Go on showing. (MUSTER_WATCH)
                  --server <url>          Base URL of the coordinator, or several, separated by
                                          commas. (MUSTER_SERVER; default:
                                          http://127.0.0.1:7300)
                  --token <token>         The token, if the coordinator asks for one. Better
                                          set MUSTER_TOKEN: arguments can be seen by everybody.
                  --json                  Print the result as JSON on standard output, and
                                          nothing else there. (MUSTER_JSON)
                  --config <file>         A JSON file with values for options. (MUSTER_CONFIG)
                  --log-level <level>     What is logged on standard error: trace, debug, info,
                                          notice, warning, error, critical. (MUSTER_LOG_LEVEL)
                  --version               Show the version.
                  -h, --help              Show help information.
                """
        )
    }
}
