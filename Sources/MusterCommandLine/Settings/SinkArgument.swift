import FoundationEssentials
import MusterCore
import MusterWorker

/// A sink on the command line: `NAME=DIR`.
struct SinkArgument: Hashable, Sendable {
    /// The name by which groups ask for it.
    let name: String
    /// The directory, absolute.
    let directory: String
    /// How the worker recognizes the right directory.
    var identity = SinkConfiguration.Identity.remembered

    /// A sink.
    init(name: String, directory: String, identity: SinkConfiguration.Identity = .remembered) {
        self.name = name
        self.directory = directory
        self.identity = identity
    }

    /// Parses `NAME=DIR`; a relative directory is resolved against `base`.
    ///
    /// - Throws: `CommandFailure.usage` with what is wrong.
    init(_ text: String, base: String) throws(CommandFailure) {
        guard let sign = text.firstIndex(of: "=") else {
            throw .usage("--sink must be NAME=DIR, such as \(defaultSinkName)=/srv/files, not \"\(text)\"")
        }
        name = String(text[..<sign])
        let path = String(text[text.index(after: sign)...])
        guard NameRule.accepts(name) else {
            throw .usage("the name of a sink \(NameRule.explanation), not \"\(name)\"")
        }
        guard !path.isEmpty else { throw .usage("--sink \(text): a directory is missing after the =") }
        directory = Self.absolute(path, base: base)
    }

    /// Parses several sinks. A piece without `=` belongs to the piece before it: the path has a comma, at which the environment is split.
    static func list(_ texts: [String], base: String) throws(CommandFailure) -> [SinkArgument] {
        var joined: [String] = []
        for text in texts {
            if !text.contains("="), let last = joined.popLast() {
                joined.append(last + "," + text)
            } else {
                joined.append(text)
            }
        }
        var sinks: [SinkArgument] = []
        for text in joined {
            let sink = try SinkArgument(text, base: base)
            guard !sinks.contains(where: { $0.name == sink.name }) else {
                throw .usage("the sink \(sink.name) is given twice")
            }
            sinks.append(sink)
        }
        return sinks
    }

    /// A path that does not depend on the working directory.
    static func absolute(_ path: String, base: String) -> String {
        path.hasPrefix("/") ? path : path == "." ? base : base + "/" + path
    }
}
