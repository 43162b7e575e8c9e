import Testing

@testable import MusterCommandLine

/// The help texts are part of what people and scripts rely on: a change is meant, or it shows here.
@Suite("Help for those who make groups and ask about them")
struct HelpOfGroupsTests {
    @Test func theHelpOfAdd() {
        #expect(
            MusterProgram.help("add", columns: 80) == """
                OVERVIEW: Adds tasks to a group, which is created if it is missing.

                The group is sealed afterwards, so that it completes once every task is done;
                with --open more can be added later. Tasks whose key is there already change
                nothing. A list with a mistake is refused as a whole. How files are fetched is
                said when the group is made. Paths and env:NAME are those of the workers.

                A manifest has a URL per line, or a task as JSON per line:
                  https://example.org/a.tar
                  {"urls": ["https://example.org/b.tar"], "path": "b/b.tar", "size": 123}

                Examples:
                  muster add nightly https://example.org/a.tar https://example.org/b.tar
                  muster add nightly -i manifest.ndjson --wait
                  generate-list | muster add nightly -i - --open
                  muster add private -i urls.txt --header 'X-Key: file:/run/secrets/key'

                USAGE: muster add <group> [-i <manifest>] [--sink <name>] [--open] [--priority <n>] [--wait] [<url> ...]

                ARGUMENTS:
                  <group>                 The group's name.
                  <url>                   URLs to fetch.

                OPTIONS:
                  -i, --manifest <manifest>
                                          The list of tasks; - is standard input.
                                          (MUSTER_MANIFEST)
                  --sink <name>           The sink of a new group. (MUSTER_SINK, if that is a
                                          single name; default: default)
                  --open                  Leave the group open for more tasks. (MUSTER_OPEN)
                  --priority <n>          The priority of a new group, -1000 to 1000; higher is
                                          served first. (MUSTER_PRIORITY; default: 0)
                  --wait                  Wait until the group is done, and show how it goes.
                                          (MUSTER_WAIT)
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

    @Test func theHelpOfExplain() {
        #expect(
            MusterProgram.help("explain", columns: 80) == """
                OVERVIEW: Tells why a task is not done: what it waits for, since when, and what
                happens next.

                It shows who works on the task, how each of its sources did, and what was
                tried: when, with which answer, and what followed.

                Examples:
                  muster explain nightly a/b.tar
                  muster explain nightly a/b.tar --json | jq -r .summary

                USAGE: muster explain <group> <key>

                ARGUMENTS:
                  <group>                 The group's name.
                  <key>                   The task's key.

                OPTIONS:
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

    @Test func theHelpOfOrigins() {
        #expect(
            MusterProgram.help("origins", columns: 80) == """
                OVERVIEW: Lists the origins that files come from, and sets what the fleet may
                do to them.

                An origin is a scheme, a host and a port. The fleet shares one budget for each:
                its cap is halved when the origin refuses because there is too much at once,
                and grows again by one a minute.

                Examples:
                  muster origins
                  muster origins set https://example.org --max-connections 4
                  muster origins set https://example.org --pause-until 30m

                USAGE: muster origins [--json]
                       muster origins set <origin> [--max-connections <n>] [--pause-until <t>]

                OPTIONS:
                  --version               Show the version.
                  -h, --help              Show help information.

                SUBCOMMANDS:
                  list (default)          Lists the origins, and what the fleet may do to them.
                  set                     Sets how many connections the fleet may have to an
                                          origin, or leaves it alone for a while.

                  See 'muster help origins <subcommand>' for detailed help.
                """
        )
    }

    @Test func theHelpOfSettingAnOrigin() {
        #expect(
            MusterProgram.help("origins", "set", columns: 80) == """
                OVERVIEW: Sets how many connections the fleet may have to an origin, or leaves
                it alone for a while.

                A duration is counted by the database's clock from the moment the request
                arrives. Transfers that are running when an origin is paused go on; nothing new
                is begun.

                Examples:
                  muster origins set https://example.org --max-connections 4
                  muster origins set https://example.org --max-connections default
                  muster origins set https://example.org:8443 --pause-until 2026-03-01T06:00:00Z

                USAGE: muster origins set <origin> [--max-connections <n>|default] [--pause-until <time>|<duration>|now]

                ARGUMENTS:
                  <origin>                The origin: scheme, host and port, as in
                                          https://example.org.

                OPTIONS:
                  --max-connections <n>   The cap, or default for the coordinators' own; either
                                          forgets what was learned. (MUSTER_MAX_CONNECTIONS)
                  --pause-until <time>    A time (RFC 3339), a duration such as 30m, or now to
                                          end a pause. (MUSTER_PAUSE_UNTIL)
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
