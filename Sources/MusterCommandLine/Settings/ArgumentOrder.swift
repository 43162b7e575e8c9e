/// Lets global options stand before the command too: `muster --json status` means `muster status --json`.
enum ArgumentOrder {
    /// Global options that take a value.
    private static let valued: Set<String> = ["--server", "--token", "--config", "--log-level"]
    /// Global options that take none.
    private static let flags: Set<String> = ["--json"]

    /// Commands of two words.
    private static let parts: [String: Set<String>] = [
        "origins": ["set", "list"], "subscriptions": ["add", "enable", "disable", "rotate", "remove", "list"],
        "deliveries": ["replay", "list"],
    ]

    /// The arguments with leading global options moved behind the command. With any other argument before the command, such as `--help`,
    /// they stay unchanged, and the parser decides.
    static func normalized(_ arguments: [String]) -> [String] {
        var leading: [String] = []
        var index = 0
        while index < arguments.count, arguments[index].hasPrefix("-") {
            let argument = arguments[index]
            let name = String(argument.prefix { $0 != "=" })
            if flags.contains(argument) || valued.contains(name) && argument.contains("=") {
                leading.append(argument)
                index += 1
            } else if valued.contains(argument), index + 1 < arguments.count {
                leading += [argument, arguments[index + 1]]
                index += 2
            } else {
                return arguments
            }
        }
        guard !leading.isEmpty, index < arguments.count else { return arguments }
        var command = [arguments[index]]
        index += 1
        if index < arguments.count, parts[command[0]]?.contains(arguments[index]) == true {
            command.append(arguments[index])
            index += 1
        }
        return command + leading + arguments[index...]
    }
}
