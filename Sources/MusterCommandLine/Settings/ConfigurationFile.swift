import FoundationEssentials
import MusterCore

/// A configuration file: a JSON object whose keys are the options' long names.
///
/// An object under a command's name applies to that command only, and overrides the file's other values: `{"server":
/// "http://10.0.0.1:7300", "work": {"sink": ["default=/srv/files"]}}`. A key that is no option is refused, so that a misspelt key is never
/// silently ignored.
struct ConfigurationFile {
    /// The texts of each setting, as they would stand on the command line.
    let values: [SettingName: [String]]

    /// The longest file that is read, in bytes.
    private static let limit = 1 << 20

    /// Reads a file for a command.
    ///
    /// - Throws: `CommandFailure.usage`, which names the file and the key.
    init(path: String, command: String, commands: Set<String>) throws(CommandFailure) {
        let json = try SmallFile.read(path, what: "configuration file", limit: Self.limit)
        try self.init(json: json, path: path, command: command, commands: commands)
    }

    /// Reads the content of a file; `path` only names it in errors.
    init(json: [UInt8], path: String, command: String, commands: Set<String>) throws(CommandFailure) {
        let document: JSONValue
        do {
            document = try JSONDecoder().decode(JSONValue.self, from: Data(json))
        } catch {
            throw .usage("the configuration file \(path) is not JSON")
        }
        guard case .object(let fields) = document else {
            throw .usage("the configuration file \(path) must be a JSON object")
        }
        var values: [SettingName: [String]] = [:]
        for (key, value) in fields {
            if commands.contains(key), case .object(let section) = value {
                // Sections of other commands are checked too, so that mistakes in them are found now.
                for (inner, value) in section {
                    let (name, texts) = try Self.entry(inner, value, place: "\(key).\(inner)", path: path)
                    if key == command { values[name] = texts }
                }
                continue
            }
            let (name, texts) = try Self.entry(key, value, place: key, path: path)
            if case .object(let section)? = fields[command], section[key] != nil { continue }
            values[name] = texts
        }
        self.values = values
    }

    private static func entry(
        _ key: String,
        _ value: JSONValue,
        place: String,
        path: String
    ) throws(CommandFailure) -> (SettingName, [String]) {
        guard let name = SettingName(rawValue: key), name != .exitWithParent else {
            throw .usage("the configuration file \(path) has an unknown key \"\(place)\"")
        }
        switch value {
        case .string(let text): return (name, [text])
        case .integer(let number): return (name, [String(number)])
        case .bool(let flag): return (name, [flag ? "true" : "false"])
        case .array(let items) where name.isList:
            var texts: [String] = []
            for item in items {
                guard case .string(let text) = item else {
                    throw .usage("the configuration file \(path): \"\(place)\" must be a list of texts")
                }
                texts.append(text)
            }
            return (name, texts)
        case .null, .number, .array, .object:
            throw .usage("the configuration file \(path): \"\(place)\" must be a text, a whole number, true or false")
        }
    }
}
