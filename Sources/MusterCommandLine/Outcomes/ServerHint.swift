import MusterAPI
import MusterCore

/// Advice for when no coordinator answers.
enum ServerHint {
    /// How to name another coordinator.
    static let elsewhere = "--server URL (MUSTER_SERVER) names another one"

    /// Advice for when the answer does not come from a coordinator, or from a coordinator that does not know the path.
    static func base(_ servers: [String]) -> String {
        let bases = servers.filter { hasPath($0) }.compactMap { try? SourceURL(validating: $0).origin }
        guard let base = bases.first else { return elsewhere }
        return "the URL of a coordinator ends with its port, unless a proxy adds a path: --server \(base)"
    }

    /// Whether a URL has a path other than `/`.
    private static func hasPath(_ server: String) -> Bool {
        guard let start = server.firstRange(of: "://")?.upperBound else { return false }
        return server[start...].drop { $0 != "/" }.contains { $0 != "/" }
    }

    /// Why a coordinator's URL with a path answers `notFound` to requests that every coordinator serves: its path leads to no coordinator. `nil` for any
    /// other problem, and if no URL has a path.
    static func strayed(_ problem: Problem, servers: [String]) -> CommandFailure? {
        guard problem.code == .notFound, let server = servers.first(where: hasPath) else { return nil }
        return .unreachable(
            "\(server) leads to no Muster coordinator: what answers there has no such path", hint: base(servers))
    }

    /// What is known of the coordinators that are asked, besides their addresses.
    struct Installation: Sendable {
        /// Whether a database is named, which coordinators share.
        var namesDatabase = false
        /// Whether `muster up` has kept data on this machine.
        var hasData = false
    }

    /// Advice for these addresses. A coordinator can be started on this machine only if no process listens there. Where `muster up` could put an
    /// installation of its own in the place of another one, `muster serve` is named beside it.
    static func text(_ unreachable: Unreachable, servers: [String], _ installation: Installation) -> String {
        let local = servers.compactMap(loopback)
        guard local.count == servers.count else {
            return "check whether it runs there; \(elsewhere)"
        }
        guard unreachable.isRefused, let first = local.first else {
            return "something listens there that does not answer as a coordinator does; \(elsewhere)"
        }
        // Several were asked, and the failure tells of one of them.
        let failed = local.first { unreachable.description.contains("port \($0.split(separator: ":").last ?? "") ") }
        let listen = "--listen \(failed ?? first)"
        if installation.namesDatabase { return "start one on this machine with: muster serve \(listen)" }
        if local.count > 1 {
            return
                "start one on this machine, with the database of the others, with: muster serve --database URL \(listen)"
        }
        let own = servers[0] == ClientOptions.defaultServer ? "muster up" : "muster up \(listen)"
        let which = installation.hasData ? "the one whose data is" : "a new and empty one"
        return "start \(which) on this machine with: \(own)\n"
            + "  or start one again whose data is elsewhere: \(own) --data DIR\n"
            + "  or one that has a database of its own: muster serve --database URL \(listen)"
    }

    /// The text with the coordinators in its commands, since without `--server` these would ask other coordinators.
    static func commands(in text: String, naming server: String) -> String {
        text.replacing(/(^|[ (\n])muster ([a-z]+)/) { match -> String in
            let verb = String(match.output.2)
            guard MusterCommand.asking.contains(verb) else { return String(match.output.0) }
            return "\(match.output.1)muster --server \(ShellWord(server)) \(verb)"
        }
    }

    /// Host and port of a loopback address at which a coordinator could listen; `nil` for any other URL.
    private static func loopback(_ server: String) -> String? {
        guard let url = try? SourceURL(validating: server), url.origin.hasPrefix("http://") else { return nil }
        let address = url.origin.dropFirst("http://".count)
        let isLocal = ["127.", "localhost:", "[::1]:"].contains { address.hasPrefix($0) }
        return isLocal ? String(address) : nil
    }
}
