import Testing

@testable import MusterCommandLine

/// The help texts are part of what people and scripts rely on: a change is meant, or it shows here.
@Suite("Help")
struct HelpTests {
    @Test func everyCommandHasAnExampleAndItsUsage() {
        for name in MusterCommand.names {
            let help = MusterProgram.help(name, columns: 80)
            #expect(help.contains("Example"), "\(name)")
            #expect(help.contains("USAGE: muster \(name)"), "\(name)")
            #expect(help.contains("muster \(name)"), "\(name)")
            #expect(help.split(separator: "\n").allSatisfy { $0.count <= 80 || $0.contains("USAGE") }, "\(name)")
        }
    }

    @Test func theCommandsAreThoseOfTheContract() {
        #expect(
            MusterCommand.names == [
                "get", "up", "serve", "work", "migrate", "add", "seal", "status", "tasks", "explain", "wait", "pause",
                "resume",
                "cancel",
                "retry", "remove", "events", "workers", "origins", "drain",
            ]
        )
    }

    @Test func theHelpOfTheProgram() {
        #expect(
            MusterProgram.help(columns: 80) == """
                OVERVIEW: Downloads a heap of files concurrently, and tells when all of them
                are really there.

                One person on one machine needs one command:
                  muster get -i urls.txt -d downloads

                A service that outlives every process that works on it:
                  muster up
                  muster add nightly -i manifest.ndjson
                  muster wait nightly --timeout 2h

                Every option has an environment variable (--server is MUSTER_SERVER) and a key
                in a JSON configuration file (--config FILE, the key is "server"). The command
                line wins, then the environment, then the file.

                Exit codes: 0 success; 1 the group failed; 2 usage; 3 coordinator unreachable;
                4 timed out; 5 cancelled; 6 refused by the coordinator.

                USAGE: muster <subcommand>

                OPTIONS:
                  --version               Show the version.
                  -h, --help              Show help information.

                ON ONE MACHINE SUBCOMMANDS:
                  get                     Downloads URLs into a directory: everything embedded,
                                          with progress bars.
                  up                      Runs a coordinator, workers and a private PostgreSQL
                                          on this machine, until stopped.

                A FLEET SUBCOMMANDS:
                  serve                   Runs a coordinator. Run as many as you like on one
                                          database.
                  work                    Runs a worker. Run as many as you like.
                  migrate                 Brings a database's schema up to date.

                GROUPS SUBCOMMANDS:
                  add                     Adds tasks to a group, which is created if it is
                                          missing.
                  seal                    Says that no more tasks will be added, so that the
                                          group can complete.
                  status                  Shows all groups, or one of them in detail.
                  tasks                   Lists the tasks of a group.
                  explain                 Tells why a task is not done: what it waits for,
                                          since when, and what happens next.
                  wait                    Waits until a group is done, and ends with the exit
                                          code that says how.
                  pause                   Stops fetching a group, or some of its tasks, and
                                          keeps what is there.
                  resume                  Goes on with a paused group, or with some of its
                                          tasks.
                  cancel                  Ends a group, or some of its tasks, and drops
                                          unfinished bytes. Finished files stay.
                  retry                   Puts failed tasks back with the bytes they had.
                  remove                  Forgets a group, or some of its tasks. Finished files
                                          stay unless told otherwise.
                  events                  Prints the durable log of what happened.

                WORKERS AND ORIGINS SUBCOMMANDS:
                  workers                 Lists the workers that are alive.
                  drain                   Tells a worker to finish or give back what it has,
                                          and to leave.
                  origins                 Lists the origins that files come from, and sets what
                                          the fleet may do to them.

                  See 'muster help <subcommand>' for detailed help.
                """
        )
    }

    @Test func theHelpOfGet() {
        #expect(
            MusterProgram.help("get", columns: 80) == """
                OVERVIEW: Downloads URLs into a directory: everything embedded, with progress
                bars.

                Its state is kept in DIR/.muster. The same command again, after a crash or
                Ctrl-C, goes on where it was; after a failure it tries again what failed; after
                a success it checks that the files are still there, and fetches those that are
                not.

                Examples:
                  muster get https://example.org/a.iso
                  muster get -d mirror -i urls.txt
                  muster get --digest sha256:9f86d081… https://example.org/a.iso
                  muster get --user me:env:PASSWORD https://example.org/private.tar
                  generate-list | muster get -d mirror -i - --json

                USAGE: muster get [-d <dir>] [-i <manifest>] [--digest <sha256:hex>] [--workers <n>] [<url> ...]

                ARGUMENTS:
                  <url>                   URLs to fetch.

                OPTIONS:
                  -d, --directory <dir>   Where the files go. (MUSTER_DIRECTORY; default: the
                                          working directory)
                  -i, --manifest <manifest>
                                          A list: a URL or a task as JSON per line; - is
                                          standard input. (MUSTER_MANIFEST)
                  --digest <sha256:hex>   What the content of a single URL must be.
                                          (MUSTER_DIGEST)
                  --workers <n>           Workers in this process, 1 to 16. (MUSTER_WORKERS;
                                          default: 1)
                  --slots <n>             Transfers at once of each worker, 1 to 1024.
                                          (MUSTER_SLOTS; default: 16)
                  --header <name: value>  A header field of every request; may be repeated. The
                                          value may be env:NAME or file:PATH. (MUSTER_HEADER,
                                          one a line)
                  --proxy <url>           A proxy's URL, direct, or environment; env:NAME or
                                          file:PATH if it is secret. (MUSTER_PROXY)
                  --cookie <name=value>   A cookie; may be repeated. The value may be env:NAME
                                          or file:PATH. (MUSTER_COOKIE, one a line)
                  --cookie-file <file>    A file of cookies in Netscape's form.
                                          (MUSTER_COOKIE_FILE)
                  --user <name[:secret]>  User and password, which may be env:NAME or
                                          file:PATH. (MUSTER_USER)
                  --netrc <file>          A netrc file with users and passwords. (MUSTER_NETRC)
                  --ca-file <file>        Authorities to trust instead of the usual ones, as
                                          PEM. (MUSTER_CA_FILE)
                  --certificate <file>    A client certificate as PEM; needs --key.
                                          (MUSTER_CERTIFICATE)
                  --key <file>            The private key of --certificate. (MUSTER_KEY)
                  --known-hosts <file>    Known hosts for sftp. (MUSTER_KNOWN_HOSTS)
                  --private-key <file>    A private key for sftp. (MUSTER_PRIVATE_KEY)
                  --http-version <version>
                                          What is offered: 1.1, 2, 2-prior-knowledge.
                                          (MUSTER_HTTP_VERSION)
                  --if-exists <rule>      If a file is there already: verify, fail, replace,
                                          rename. (MUSTER_IF_EXISTS; default: verify)
                  --keep-time             Give files the time at which the origin says they
                                          changed. (MUSTER_KEEP_TIME)
                  --suggested-names       Name files as their origins suggest.
                                          (MUSTER_SUGGESTED_NAMES)
                  --validators <rule>     Which differences mean that the content changed:
                                          strict, or sizeAndDigest, which needs a digest of
                                          every file. (MUSTER_VALIDATORS; default: strict)
                  --resolver <url>        Is asked for a fresh URL when one has expired.
                                          (MUSTER_RESOLVER)
                  --session-ttl <duration>
                                          How long a worker may be silent before its work goes
                                          to others. (MUSTER_SESSION_TTL; default: 30s)
                  --max-connections-per-origin <n>
                                          The most connections of the whole fleet to one
                                          origin. (MUSTER_MAX_CONNECTIONS_PER_ORIGIN; default:
                                          8; get: its slots)
                  --allow-address <cidr>  A network that may be fetched from although it is
                                          private, such as 10.0.0.0/8; may be repeated.
                                          (MUSTER_ALLOW_ADDRESS, separated by commas)
                  --guard-addresses       Refuse private addresses also where only this machine
                                          reaches the coordinator. (MUSTER_GUARD_ADDRESSES)
                  --retry-base <duration> The first wait after a failure; it doubles with each
                                          further one. (MUSTER_RETRY_BASE; default: 1s)
                  --retry-maximum <duration>
                                          The longest wait after a failure.
                                          (MUSTER_RETRY_MAXIMUM; default: 5m)
                  --database-connections <n>
                                          Connections to the database.
                                          (MUSTER_DATABASE_CONNECTIONS; default: 8)
                  --minimum-chunk <size>  The smallest chunk of a file. (MUSTER_MINIMUM_CHUNK;
                                          default: 8MiB)
                  --maximum-chunk <size>  The largest chunk of a file. (MUSTER_MAXIMUM_CHUNK;
                                          default: 256MiB)
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

    @Test func theHelpOfUp() {
        #expect(
            MusterProgram.help("up", columns: 80) == """
                OVERVIEW: Runs a coordinator, workers and a private PostgreSQL on this machine,
                until stopped.

                Everything is kept in the data directory; the same command again goes on where
                it was. The workers are processes of their own. Without --sink, files of the
                sink default end up in the data directory, in "files".

                Examples:
                  muster up
                  muster up --data /srv/muster --sink default=/srv/files --workers 4
                  MUSTER_TOKEN=… MUSTER_WORKER_TOKEN=… muster up --listen 0.0.0.0:7300

                USAGE: muster up [--data <dir>] [--listen <host:port>] [--workers <n>] [--sink <name=dir>] ...

                OPTIONS:
                  --data <dir>            Where everything is kept. (MUSTER_DATA; default:
                                          $XDG_DATA_HOME/muster or ~/.local/share/muster)
                  --listen <host:port>    Where to listen; port 0 takes any that is free.
                                          (MUSTER_LISTEN; default: 127.0.0.1:7300)
                  --workers <n>           Worker processes, 0 to 64. (MUSTER_WORKERS; default:
                                          1)
                  --sink <name=dir>       A sink and its directory; may be repeated.
                                          (MUSTER_SINK, separated by commas)
                  --slots <n>             Transfers at once of each worker, 1 to 1024.
                                          (MUSTER_SLOTS; default: 16)
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
                  --token <token>         The administrators' token. Better set MUSTER_TOKEN:
                                          arguments can be seen by everybody.
                  --worker-token <token>  The workers' token. Better set MUSTER_WORKER_TOKEN.
                  --session-ttl <duration>
                                          How long a worker may be silent before its work goes
                                          to others. (MUSTER_SESSION_TTL; default: 30s)
                  --max-connections-per-origin <n>
                                          The most connections of the whole fleet to one
                                          origin. (MUSTER_MAX_CONNECTIONS_PER_ORIGIN; default:
                                          8; get: its slots)
                  --allow-address <cidr>  A network that may be fetched from although it is
                                          private, such as 10.0.0.0/8; may be repeated.
                                          (MUSTER_ALLOW_ADDRESS, separated by commas)
                  --guard-addresses       Refuse private addresses also where only this machine
                                          reaches the coordinator. (MUSTER_GUARD_ADDRESSES)
                  --retry-base <duration> The first wait after a failure; it doubles with each
                                          further one. (MUSTER_RETRY_BASE; default: 1s)
                  --retry-maximum <duration>
                                          The longest wait after a failure.
                                          (MUSTER_RETRY_MAXIMUM; default: 5m)
                  --database-connections <n>
                                          Connections to the database.
                                          (MUSTER_DATABASE_CONNECTIONS; default: 8)
                  --minimum-chunk <size>  The smallest chunk of a file. (MUSTER_MINIMUM_CHUNK;
                                          default: 8MiB)
                  --maximum-chunk <size>  The largest chunk of a file. (MUSTER_MAXIMUM_CHUNK;
                                          default: 256MiB)
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
