import ArgumentParser
import MusterAPI
import MusterCore

/// Options about how sources are asked, for commands that create or change groups. Secrets may be references that the worker resolves.
struct SourceArguments: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A header field of every request; may be repeated. The value may be env:NAME or file:PATH. (MUSTER_HEADER, one a line)",
            valueName: "name: value"
        )
    )
    var header: [String] = []

    @Option(
        help: ArgumentHelp(
            "The URL of a proxy, direct, or environment (http_proxy and its like of the worker); env:NAME or file:PATH if it is secret. (MUSTER_PROXY; default: direct; get: environment where that names one)",
            valueName: "url"
        )
    )
    var proxy: String?

    @Option(
        help: ArgumentHelp(
            "A cookie; may be repeated. The value may be env:NAME or file:PATH. (MUSTER_COOKIE, one a line)",
            valueName: "name=value"
        )
    )
    var cookie: [String] = []

    @Option(help: ArgumentHelp("A file of cookies in Netscape's form. (MUSTER_COOKIE_FILE)", valueName: "file"))
    var cookieFile: String?

    @Option(
        help: ArgumentHelp(
            "User and password, which may be env:NAME or file:PATH. (MUSTER_USER)",
            valueName: "name[:secret]"
        )
    )
    var user: String?

    @Option(help: ArgumentHelp("A netrc file with users and passwords. (MUSTER_NETRC)", valueName: "file"))
    var netrc: String?

    @Option(
        help: ArgumentHelp(
            "Authorities to trust instead of the usual ones, as PEM. (MUSTER_CA_FILE; get: SSL_CERT_FILE too)",
            valueName: "file")
    )
    var caFile: String?

    @Option(
        help: ArgumentHelp("A client certificate as PEM; needs --key. (MUSTER_CERTIFICATE)", valueName: "file")
    )
    var certificate: String?

    @Option(help: ArgumentHelp("The private key of --certificate. (MUSTER_KEY)", valueName: "file"))
    var key: String?

    @Option(help: ArgumentHelp("Known hosts for sftp. (MUSTER_KNOWN_HOSTS)", valueName: "file"))
    var knownHosts: String?

    @Option(help: ArgumentHelp("A private key for sftp. (MUSTER_PRIVATE_KEY)", valueName: "file"))
    var privateKey: String?

    @Flag(help: "Send headers, cookies and password to the other origins too that redirects and resolvers lead to.")
    var locationTrusted = false

    @Option(
        help: ArgumentHelp(
            "What is offered: \(FetchOptions.HTTPVersion.allCases.map(\.rawValue).joined(separator: ", ")). (MUSTER_HTTP_VERSION)",
            valueName: "version"
        )
    )
    var httpVersion: String?

    /// The options that were given.
    var given: [SettingName: [String]] {
        Given.values([
            .proxy: proxy, .cookieFile: cookieFile, .user: user, .netrc: netrc, .caFile: caFile,
            .certificate: certificate, .key: key, .knownHosts: knownHosts, .privateKey: privateKey,
            .httpVersion: httpVersion,
        ]).merging(Given.lists([.header: header, .cookie: cookie])) { $1 }
            .merging(Given.flags([.locationTrusted: locationTrusted])) { $1 }
    }
}

/// Options about how files are stored and checked, and about the resolver of fresh URLs, for commands that create groups.
struct PolicyArguments: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            """
            If a file is there already: \(ExistingFileRule.allCases.map(\.rawValue).joined(separator: ", ")). \
            (MUSTER_IF_EXISTS; default: verify)
            """,
            valueName: "rule"
        )
    )
    var ifExists: String?

    @Flag(help: "Store what an origin keeps compressed (Content-Encoding) decompressed. (MUSTER_DECODE)")
    var decode = false

    @Flag(help: "Give files the time at which the origin says they changed. (MUSTER_KEEP_TIME)")
    var keepTime = false

    @Flag(help: "Name files as their origins suggest. (MUSTER_SUGGESTED_NAMES)")
    var suggestedNames = false

    @Flag(
        help: """
            Take a body that ends with its connection, without a length, for complete, instead of reading it until two reads agree.
            """
    )
    var acceptUnframed = false

    @Option(
        help: ArgumentHelp(
            """
            Which differences mean that the content changed: strict, or sizeAndDigest, which needs a digest of every file. \
            (MUSTER_VALIDATORS; default: strict)
            """,
            valueName: "rule"
        )
    )
    var validators: String?

    @Option(
        help: ArgumentHelp(
            """
            Whether a file that the sink has from the same source is used again, if its origin says that it is unchanged: on or \
            off, also written yes or no. (MUSTER_REUSE; default: on)
            """,
            valueName: "switch"
        )
    )
    var reuse: String?

    @Option(
        help: ArgumentHelp("Is asked for a fresh URL when one has expired. (MUSTER_RESOLVER)", valueName: "url")
    )
    var resolver: String?

    /// The options that were given.
    var given: [SettingName: [String]] {
        Given.values([.ifExists: ifExists, .validators: validators, .reuse: reuse, .resolver: resolver])
            .merging(
                Given.flags([
                    .decode: decode, .keepTime: keepTime, .suggestedNames: suggestedNames,
                    .acceptUnframed: acceptUnframed,
                ])
            ) { $1 }
    }
}
