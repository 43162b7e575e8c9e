import Glibc
import MusterCore

/// Why something that options refer to can't be used. It names the reference, never what the reference leads to.
struct SecretRefusal: Error, Hashable, Sendable, CustomStringConvertible {
    /// The reference as it was given: `env:NAME`, `file:PATH`, or a path.
    let reference: String
    /// What is wrong with it, in words that follow on the reference.
    let reason: String

    /// Both, fit for a report's `detail`.
    var description: String { "\(reference) \(reason)" }
}

/// Reads what secrets and the path options refer to, on the worker that needs it. Reading files blocks.
///
/// Whoever may add tasks can send any header to a server of their own: what a reference leads to is in their hands. So a worker
/// whose coordinator takes orders from other machines reads only what its own operator has named.
struct SecretStore: Sendable {
    /// Whose references are read.
    enum Scope: Sendable, Hashable {
        /// Those of people on this machine: everything but Muster's own variables.
        case local
        /// Anybody's: the variables and the directory of the worker's settings, and nothing else.
        case listed
    }

    /// The most bytes of a secret.
    static let limitBytes: Int64 = 64 << 10

    private let variables: Set<String>
    private let directory: String?
    private let scope: Scope
    private let environment: @Sendable (String) -> String?

    /// A store for references of one scope.
    ///
    /// - Parameter environment: the value of an environment variable.
    init(
        scope: Scope,
        variables: [String] = [],
        directory: String? = nil,
        environment: @escaping @Sendable (String) -> String? = { name in getenv(name).map { String(cString: $0) } }
    ) {
        self.scope = scope
        self.variables = Set(variables)
        self.directory = directory
        self.environment = environment
    }

    /// The text of a secret: free of control characters, so that it can be sent in one line.
    func text(of secret: Secret) throws(SecretRefusal) -> String {
        switch secret.form {
        case .value(let text): return try checked(text, of: "a given value")
        case .environment(let name): return try checked(variable(name), of: "env:\(name)")
        case .file(let path): return try checked(content(of: path), of: "file:\(path)")
        }
    }

    /// The path of a file that a library reads by itself; without links, so that what was checked is what is read.
    func file(_ path: String) throws(SecretRefusal) -> String {
        try located(path, of: path)
    }

    private func variable(_ name: String) throws(SecretRefusal) -> String {
        let reference = "env:\(name)"
        // The tokens and database URLs of this very process are never anybody's to send.
        guard !name.uppercased().hasPrefix("MUSTER_") else {
            throw SecretRefusal(reference: reference, reason: "is one of Muster's own variables")
        }
        guard scope == .local || variables.contains(name) else {
            throw SecretRefusal(reference: reference, reason: "is not among the variables that this worker gives out")
        }
        guard let text = environment(name) else {
            throw SecretRefusal(reference: reference, reason: "is not set on this worker")
        }
        return text
    }

    private func content(of path: String) throws(SecretRefusal) -> String {
        let reference = "file:\(path)"
        let real = try located(path, of: reference)
        let components = real.split(separator: "/")
        let bytes: [UInt8]
        do throws(SystemError) {
            let parent = try Directory(path: "/" + components.dropLast().joined(separator: "/"))
            let (file, status) = try parent.file(String(components.last ?? ""), creation: .never)
            guard status.size <= Self.limitBytes else {
                throw SystemError(EFBIG)
            }
            bytes = try Self.read(file, upTo: Int(status.size))
        } catch {
            throw SecretRefusal(reference: reference, reason: "can't be read: \(error.message)")
        }
        // Editors end a file with a line break that belongs to no secret.
        var text = bytes[...]
        if text.last == UInt8(ascii: "\n") { text.removeLast() }
        if text.last == UInt8(ascii: "\r") { text.removeLast() }
        guard let string = String(validating: text, as: UTF8.self) else {
            throw SecretRefusal(reference: reference, reason: "is not UTF-8")
        }
        return string
    }

    private static func read(_ file: Descriptor, upTo count: Int) throws(SystemError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let result = bytes.withUnsafeMutableBytes { buffer in
            Result { () throws(SystemError) in try file.read(into: buffer, at: 0) }
        }
        return Array(bytes.prefix(try result.get()))
    }

    /// Where a path leads in the end; refused when that is not below the worker's directory and has to be.
    private func located(_ path: String, of reference: String) throws(SecretRefusal) -> String {
        let real = Self.withoutLinks(path)
        switch scope {
        case .local:
            guard let real else {
                throw SecretRefusal(reference: reference, reason: "is no file on this worker")
            }
            return real
        case .listed:
            // Said of a missing file as well: nobody learns what there is elsewhere.
            guard let directory, let root = Self.withoutLinks(directory), let real, real.hasPrefix(root + "/") else {
                throw SecretRefusal(reference: reference, reason: "is no file below this worker's secret directory")
            }
            return real
        }
    }

    /// The absolute path with every link followed; `nil` when it leads nowhere.
    private static func withoutLinks(_ path: String) -> String? {
        guard let real = realpath(path, nil) else { return nil }
        defer { free(real) }
        return String(cString: real)
    }

    private func checked(_ text: String, of reference: String) throws(SecretRefusal) -> String {
        guard text.utf8.allSatisfy({ ($0 >= 32 || $0 == 9) && $0 != 127 }) else {
            throw SecretRefusal(reference: reference, reason: "has a line break or another control character")
        }
        return text
    }
}

extension Secret {
    /// Whether a file has to be read for its text, which blocks.
    var isInFile: Bool {
        if case .file = form { true } else { false }
    }
}
