public import MusterCore

/// What groups may refer to on a worker, and which origins may receive it. A client that may add tasks can have any header sent to a server of its own, so a
/// secret is granted only together with its receivers.
public struct SecretGrants: Sendable, Hashable {
    /// The receivers of a secret.
    public enum Receiver: Sendable, Hashable {
        /// Any origin that a task names.
        case anyone
        /// One origin: its scheme, host and port as `SourceURL` has them.
        case origin(String)
    }

    /// Environment variables, by their exact names.
    public var variables: [String: Set<Receiver>] = [:]
    /// Directories, by their absolute paths: all files below them. No link leads out of one.
    public var directories: [String: Set<Receiver>] = [:]
    /// Single files, by the absolute paths under which they are referred to; links are followed. Any origin may receive
    /// them.
    public var files: Set<String> = []

    /// No grant at all.
    public init() {}

    /// Grants what a secret refers to, for options that a user gives for the user's own requests.
    public mutating func add(_ secret: Secret) {
        switch secret.form {
        case .value: break
        case .environment(let name): variables[name, default: []].insert(.anyone)
        case .file(let path): files.insert(path)
        }
    }

    /// Grants a file whose path is an option, if there is one.
    public mutating func add(path: String?) {
        if let path { files.insert(path) }
    }
}

extension Set<SecretGrants.Receiver> {
    /// Whether a source of this origin is among them.
    func include(origin: String?) -> Bool {
        contains(.anyone) || origin.map { contains(.origin($0)) } ?? false
    }
}
