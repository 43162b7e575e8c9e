import MusterAPI
import MusterCore

/// What helps where no coordinator answers.
enum ServerHint {
    /// Another address.
    static let elsewhere = "--server URL (MUSTER_SERVER) names another one"

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

    /// Host and port of an address of this machine alone that a coordinator could listen at.
    private static func loopback(_ server: String) -> String? {
        guard let url = try? SourceURL(validating: server), url.origin.hasPrefix("http://") else { return nil }
        let address = url.origin.dropFirst("http://".count)
        let isLocal = ["127.", "localhost:", "[::1]:"].contains { address.hasPrefix($0) }
        return isLocal ? String(address) : nil
    }
}
