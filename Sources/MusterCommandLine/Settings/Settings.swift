import Configuration
import FoundationEssentials
import Logging
import MusterAPI
import MusterCore

/// The settings of a command from all sources: the command line wins, then the environment, then the configuration file. A setting that is
/// absent everywhere gets its default where it is used.
struct Settings: Sendable {
    private let reader: ConfigReader
    /// The environment, for variables that are not options: `HOME`, `NO_COLOR` and the like.
    let environment: [String: String]
    /// The configuration file, for processes that are started with the same settings.
    let configurationPath: String?
    private let command: String
    /// The settings that come from the configuration file.
    private var namesOfFile: Set<SettingName> = []
    /// A word that is allowed instead of the value being read, for the message of a refusal.
    private var alternative: String?

    /// Gathers the settings of a command.
    ///
    /// - Parameters:
    ///   - arguments: the options on the command line; an absent key was not given.
    ///   - configuration: `--config`; `MUSTER_CONFIG` when absent.
    /// - Throws: `CommandFailure.usage` when the configuration file can't be used.
    init(
        command: String,
        arguments: [SettingName: [String]],
        configuration: String?,
        environment: [String: String]
    ) throws(CommandFailure) {
        let path = configuration ?? environment["MUSTER_CONFIG"].flatMap { $0.isEmpty ? nil : $0 }
        // In many shells an empty variable means "not set".
        let known = Set(SettingName.allCases.compactMap { $0.variable(for: command) })
        var variables = environment.filter { known.contains($0.key) && !$0.value.isEmpty }
        var lines: [SettingName: [String]] = [:]
        for name in SettingName.allCases where name.isListOfLines {
            guard let variable = name.variable(for: command) else { continue }
            lines[name] = variables.removeValue(forKey: variable)?.split(separator: "\n").map(String.init)
        }
        var providers: [any ConfigProvider] = [
            InMemoryProvider(name: "command line", values: Self.values(arguments)),
            InMemoryProvider(name: "lines of environment variables", values: Self.values(lines)),
            EnvironmentVariablesProvider(
                environmentVariables: variables,
                secretsSpecifier: .specific(
                    Set(SettingName.allCases.filter(\.isSecret).compactMap { $0.variable(for: command) }))
            ),
        ]
        if let path {
            let file = try ConfigurationFile(path: path, command: command, commands: MusterCommand.names)
            providers.append(InMemoryProvider(name: "configuration file", values: Self.values(file.values)))
            namesOfFile = Set(file.values.keys).filter { name in
                arguments[name]?.isEmpty ?? true && lines[name]?.isEmpty ?? true
                    && name.variable(for: command).map { variables[$0] == nil } ?? true
            }
        }
        reader = ConfigReader(providers: providers)
        self.command = command
        self.environment = environment
        configurationPath = path
    }

    private static func values(_ texts: [SettingName: [String]]) -> [AbsoluteConfigKey: ConfigValue] {
        var values: [AbsoluteConfigKey: ConfigValue] = [:]
        for (name, texts) in texts where !texts.isEmpty {
            let content: ConfigContent = name.isList ? .stringArray(texts) : .string(texts[0])
            values[AbsoluteConfigKey(key(name))] = ConfigValue(content, isSecret: name.isSecret)
        }
        return values
    }

    private static func key(_ name: SettingName) -> ConfigKey {
        ConfigKey(["muster", name.rawValue])
    }

    /// The text of a setting that has one value here; the values of a list are joined by commas.
    func text(_ name: SettingName) -> String? {
        guard name.isList else { return reader.string(forKey: Self.key(name), isSecret: name.isSecret) }
        let texts = texts(name)
        return texts.isEmpty ? nil : texts.joined(separator: ",")
    }

    /// The texts of a setting that has several values; in the environment they are separated by commas.
    func texts(_ name: SettingName) -> [String] {
        reader.stringArray(forKey: Self.key(name), isSecret: name.isSecret, default: [])
    }

    /// The texts of a setting that has several values, which may be separated by commas in an argument too.
    func words(_ name: SettingName) -> [String] {
        texts(name).flatMap { $0.split(separator: ",", omittingEmptySubsequences: false) }.map {
            $0.split(separator: " ").joined(separator: " ")
        }
    }

    /// Whether something is switched on.
    func flag(_ name: SettingName) throws(CommandFailure) -> Bool {
        switch text(name)?.lowercased() {
        case nil, "false", "no", "0", "off": return false
        case "true", "yes", "1", "on": return true
        case .some: throw refusal(name, "must be on or off (yes, true and 1, or no, false and 0, mean the same)")
        }
    }

    /// A whole number within bounds.
    func number(_ name: SettingName, in range: ClosedRange<Int>) throws(CommandFailure) -> Int? {
        guard let text = text(name) else { return nil }
        guard let number = Int(text), range.contains(number) else {
            throw refusal(name, "must be a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    /// A duration such as `30s`.
    func duration(_ name: SettingName) throws(CommandFailure) -> Duration? {
        guard let text = text(name) else { return nil }
        guard let duration = DurationNotation.parse(text) else {
            throw refusal(name, "must be a duration such as 500ms, 30s, 10m, 2h or 7d")
        }
        return duration
    }

    /// A size such as `8MiB`.
    func size(_ name: SettingName) throws(CommandFailure) -> ByteCount? {
        guard let text = text(name) else { return nil }
        guard let size = ByteCount(text) else {
            throw refusal(name, "must be \(ByteCount.rule)")
        }
        return size
    }

    /// Bytes per second, such as `10MiB/s`.
    func rate(_ name: SettingName) throws(CommandFailure) -> Int64? {
        guard let text = text(name) else { return nil }
        guard let rate = RateNotation.parse(text) else { throw refusal(name, RateNotation.rule) }
        return rate
    }

    /// A setting that `none` clears.
    ///
    /// - Parameter read: reads any other word, from settings whose refusals mention `none` too.
    func change<Value: Hashable & Sendable>(
        _ name: SettingName,
        _ read: (Settings) throws(CommandFailure) -> Value?
    ) throws(CommandFailure) -> Change<Value> {
        if texts(of: name) == [Self.noneWord] { return .clear }
        var settings = self
        settings.alternative = Self.noneWord
        return try read(settings).map { .set($0) } ?? .keep
    }

    /// The word that clears a setting.
    static let noneWord = "none"

    /// The texts of any setting.
    func texts(of name: SettingName) -> [String] {
        name.isList ? texts(name) : text(name).map { [$0] } ?? []
    }

    /// One of the values of an enumeration.
    func choice<Choice: RawRepresentable<String> & CaseIterable>(
        _ name: SettingName,
        of type: Choice.Type
    ) throws(CommandFailure) -> Choice? {
        guard let text = text(name) else { return nil }
        guard let choice = Choice(rawValue: text) else {
            throw refusal(name, "must be one of \(Choice.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        return choice
    }

    /// The refusal of a setting's value. It shows the value unless that is a secret.
    func refusal(_ name: SettingName, _ rule: String) -> CommandFailure {
        let other = alternative.map { ", or \($0)" } ?? ""
        let given = name.isSecret ? "" : ", not \"\(text(name) ?? "")\""
        return .usage("\(named(name)) \(rule)\(other)\(given)")
    }

    /// An option with its variable, `--server (MUSTER_SERVER)`, or with the configuration file that its value comes from.
    func named(_ name: SettingName) -> String {
        if let configurationPath, namesOfFile.contains(name) { return "\(name.option) in \(configurationPath)" }
        return name.option + (name.variable(for: command).map { " (\($0))" } ?? "")
    }

    /// A logger to standard error, at the level that was asked for.
    func logger(default level: Logger.Level) throws(CommandFailure) -> Logger {
        var logger = Logger(label: "muster") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = try logLevel() ?? level
        return logger
    }

    /// The level of the log that was asked for. Commands without a log check it too.
    func logLevel() throws(CommandFailure) -> Logger.Level? {
        try choice(.logLevel, of: Logger.Level.self)
    }
}
