import MusterAPI
import MusterCore

/// What helps where no coordinator answers.
enum ServerHint {
    /// Another address.
    static let elsewhere = "--server URL (MUSTER_SERVER) names another one"

    /// What helps where something else than a coordinator answers, or one that knows nothing of the path.
    static func base(_ servers: [String]) -> String {
        let bases = servers.filter { hasPath($0) }.compactMap { try? SourceURL(validating: $0).origin }
        guard let base = bases.first else { return elsewhere }
        return "the URL of a coordinator ends with its port, unless a proxy adds a path: --server \(base)"
    }

    /// Whether a URL names something at its host.
    private static func hasPath(_ server: String) -> Bool {
        guard let start = server.firstRange(of: "://")?.upperBound else { return false }
        return server[start...].drop { $0 != "/" }.contains { $0 != "/" }
    }

    /// Why requests to these are refused whose path every coordinator has: a path was given that leads to none. `nil` where none was.
    static func strayed(_ problem: Problem, servers: [String]) -> CommandFailure? {
        guard problem.code == .notFound, let server = servers.first(where: hasPath) else { return nil }
        return .unreachable(
            "\(server) leads to no Muster coordinator: what answers there has no such path", hint: base(servers))
    }

    /// What helps at these addresses: one can be started here only where nobody listens.
    static func text(_ unreachable: Unreachable, servers: [String]) -> String {
        let local = servers.compactMap(loopback)
        guard local.count == servers.count else {
            return "check whether it runs there; \(elsewhere)"
        }
        guard unreachable.isRefused, let first = local.first else {
            return "something listens there that does not answer as a coordinator does; \(elsewhere)"
        }
        return "start one on this machine with: muster up"
            + (servers[0] == ClientOptions.defaultServer ? "" : " --listen \(first)")
    }

    /// A text whose commands name the coordinators that they are to ask: without, they would ask others.
    static func commands(in text: String, naming server: String) -> String {
        text.replacing(/(^|[ (\n])muster ([a-z]+)/) { match -> String in
            let verb = String(match.output.2)
            guard MusterCommand.asking.contains(verb) else { return String(match.output.0) }
            return "\(match.output.1)muster --server \(ShellWord(server)) \(verb)"
        }
    }

    /// Host and port of an address of this machine alone that a coordinator could listen at.
    private static func loopback(_ server: String) -> String? {
        guard let url = try? SourceURL(validating: server), url.origin.hasPrefix("http://") else { return nil }
        let address = url.origin.dropFirst("http://".count)
        let isLocal = ["127.", "localhost:", "[::1]:"].contains { address.hasPrefix($0) }
        return isLocal ? String(address) : nil
    }
}
