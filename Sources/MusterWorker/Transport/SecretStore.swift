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
/// It reads only what the operator of the worker has granted, and for a granted receiver alone.
struct SecretStore: Sendable {
    /// The most bytes of a secret.
    static let limitBytes: Int64 = 64 << 10

    private let grants: SecretGrants
    private let environment: @Sendable (String) -> String?
    /// The origin that is sent what is read; without one, only secrets are read that any origin may receive.
    private var origin: String?

    /// A store without a receiver.
    ///
    /// - Parameter environment: the value of an environment variable.
    init(
        grants: SecretGrants = SecretGrants(),
        environment: @escaping @Sendable (String) -> String? = { name in getenv(name).map { String(cString: $0) } }
    ) {
        self.grants = grants
        self.environment = environment
    }

    /// The store for requests to a URL.
    func sending(to url: String) -> SecretStore {
        var store = self
        store.origin = try? SourceURL(validating: url).origin
        return store
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
        try located(path, of: "file:\(path)")
    }

    private func variable(_ name: String) throws(SecretRefusal) -> String {
        let reference = "env:\(name)"
        // The tokens and database URLs of this process are never sent.
        guard !name.uppercased().hasPrefix("MUSTER_") else {
            throw SecretRefusal(reference: reference, reason: "is one of Muster's own variables")
        }
        guard grants.variables[name]?.include(origin: origin) == true else {
            throw SecretRefusal(
                reference: reference, reason: "is not among the variables that this worker gives to the source")
        }
        guard let text = environment(name) else {
            throw SecretRefusal(reference: reference, reason: "is not set")
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
        // Editors end a file with a line break that is not part of the secret.
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

    /// The real path of a file; refused when neither the file nor a directory above it is granted.
    private func located(_ path: String, of reference: String) throws(SecretRefusal) -> String {
        if let real = Self.withoutLinks(path) {
            if grants.files.contains(path) { return real }
            for (directory, receivers) in grants.directories where receivers.include(origin: origin) {
                guard let root = Self.withoutLinks(directory) else { continue }
                if real.hasPrefix(root == "/" ? root : root + "/") { return real }
            }
        }
        // Also said of a missing file, so that the message does not reveal which files exist.
        throw SecretRefusal(reference: reference, reason: "is no file that this worker gives to the source")
    }

    /// The absolute path with every link followed; `nil` when there is no such file.
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
