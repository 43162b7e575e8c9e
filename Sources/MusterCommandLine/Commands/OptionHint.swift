/// What Muster has in place of an option that other tools are known for.
struct OptionHint: Sendable {
    /// The names of the option in curl, wget and aria2.
    let names: Set<String>
    /// The option of Muster that corresponds. Only commands that have this option give the hint.
    let option: String
    /// What to do instead.
    let text: String

    private static let all = [
        OptionHint(
            names: ["--rate", "--limit-rate", "--max-download-limit", "--max-overall-download-limit"],
            option: "--max-rate", text: "--max-rate RATE, such as 10MiB/s, limits all of it"),
        OptionHint(
            names: ["--max-rate", "--limit-rate", "--max-download-limit"], option: "--rate",
            text: "--rate RATE, such as 10MiB/s, limits the group"),
        OptionHint(
            names: ["-O", "--out", "--output-document", "--remote-name", "--remote-name-all"], option: "--output",
            text:
                "-o FILE names the file of a single URL; others are named by their URLs, or by lines of -i: {\"urls\": [\"https://…\"], \"path\": \"…\"}"
        ),
        OptionHint(
            names: ["-o", "-O", "--output", "--out", "--output-document", "--remote-name", "--remote-name-all"],
            option: "--manifest",
            text: "files are named by their URLs; lines of -i give names: {\"urls\": [\"https://…\"], \"path\": \"…\"}"),
        OptionHint(
            names: ["-P", "--dir", "--directory-prefix", "--output-dir"], option: "--directory",
            text: "-d DIR says where the files go"),
        OptionHint(
            names: ["-j", "-Z", "--parallel", "--parallel-max", "--max-concurrent-downloads", "--jobs"],
            option: "--slots", text: "--slots N is how many transfers there are at once"),
        OptionHint(
            names: ["-x", "--split", "--max-connection-per-server", "--connections"],
            option: "--max-connections-per-origin",
            text: "--max-connections-per-origin N is how many connections an origin gets; --proxy URL names a proxy"),
        OptionHint(
            names: ["-H", "-A", "-e", "-U", "--user-agent", "--referer"], option: "--header",
            text: "--header \"NAME: VALUE\" sends a field, such as User-Agent or Referer"),
        OptionHint(names: ["-u", "--http-user"], option: "--user", text: "--user NAME:PASSWORD"),
        OptionHint(
            names: ["-b", "--load-cookies"], option: "--cookie", text: "--cookie NAME=VALUE, or --cookie-file FILE"),
        OptionHint(
            names: ["-k", "--insecure", "--no-check-certificate", "--cacert", "--ca-certificate"], option: "--ca-file",
            text: "--ca-file FILE names the authorities to trust; certificates are always checked"),
        OptionHint(names: ["-E", "--cert"], option: "--certificate", text: "--certificate FILE with --key FILE"),
        OptionHint(names: ["--checksum"], option: "--digest", text: "--digest sha256:HEX"),
        OptionHint(names: ["--input-file"], option: "--manifest", text: "-i FILE is a list of URLs"),
        OptionHint(
            names: ["-t", "-m", "--retry", "--max-tries"], option: "--tries",
            text: "--tries N is how often a file is tried without any progress"),
        OptionHint(
            names: ["-c", "-C", "--continue", "--continue-at", "--retry"], option: "--header",
            text: "no option is needed: failures are tried again, and the same command goes on where it was"),
        OptionHint(
            names: ["-q", "-s", "-nv", "--quiet", "--silent", "--no-verbose", "--no-progress-meter"], option: "--json",
            text: "no option is needed: bars are drawn on a terminal alone; with > /dev/null the exit code tells"),
        OptionHint(
            names: ["-L", "--location"], option: "--header", text: "no option is needed: redirects are followed"),
    ]

    private static let beginning = "Error: Unknown option '"

    /// The parser's complaint about an unknown option, with a hint if one is known.
    ///
    /// - Parameter command: the words of the command.
    static func completed(_ complaint: String, command: [String]) -> String {
        var lines = complaint.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        guard lines[0].hasPrefix(beginning), let name = lines[0].dropFirst(beginning.count).split(separator: "'").first,
            let hint = hint(String(name), options: MusterProgram.help(command, columns: 100))
        else { return complaint }
        lines[0] = "\(beginning)\(name)'.\n  \(hint.text)"
        return lines.joined(separator: "\n")
    }

    private static func hint(_ name: String, options: String) -> OptionHint? {
        all.first { $0.names.contains(name) && options.contains("\($0.option) ") }
    }
}
