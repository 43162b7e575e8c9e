import FoundationEssentials
import MusterAPI
import MusterCore
import Testing

@testable import MusterCommandLine

@Suite("Settings")
struct SettingsTests {
    /// Settings with a configuration file of this content.
    private func settings(
        _ arguments: [SettingName: [String]] = [:],
        environment: [String: String] = [:],
        file: String? = nil,
        command: String = "work"
    ) throws -> Settings {
        guard let file else {
            return try Settings(command: command, arguments: arguments, configuration: nil, environment: environment)
        }
        let path = FileManager.default.temporaryDirectory.path + "/muster-settings-\(RandomToken.make()).json"
        #expect(FileManager.default.createFile(atPath: path, contents: Data(file.utf8)))
        defer { try? FileManager.default.removeItem(atPath: path) }
        return try Settings(command: command, arguments: arguments, configuration: path, environment: environment)
    }

    @Test func commandLineWinsOverEnvironmentOverFileOverDefault() throws {
        let file = #"{"slots": 3}"#
        let environment = ["MUSTER_SLOTS": "2"]
        #expect(try settings([.slots: ["1"]], environment: environment, file: file).number(.slots, in: 1...9) == 1)
        #expect(try settings(environment: environment, file: file).number(.slots, in: 1...9) == 2)
        #expect(try settings(file: file).number(.slots, in: 1...9) == 3)
        #expect(try settings().number(.slots, in: 1...9) == nil)
    }

    @Test func refusalNamesTheFileThatSaysTheValue() throws {
        func refusal(_ arguments: [SettingName: [String]] = [:], environment: [String: String] = [:]) throws -> String {
            let settings = try settings(arguments, environment: environment, file: #"{"slots": "many"}"#)
            let failure = #expect(throws: CommandFailure.self) { try settings.number(.slots, in: 1...9) }
            return try "\(#require(failure))"
        }
        #expect(try refusal().contains("--slots in /"))
        #expect(try refusal([.slots: ["x"]]).contains("--slots (MUSTER_SLOTS)"))
        #expect(try refusal(environment: ["MUSTER_SLOTS": "x"]).contains("--slots (MUSTER_SLOTS)"))
    }

    @Test func everyOtherSettingHasAnEnvironmentVariable() throws {
        for name in SettingName.allCases where !name.isList {
            guard let variable = name.variable(for: "work") else { continue }
            #expect(try settings(environment: [variable: "x"]).text(name) == "x", "\(name)")
        }
        #expect(SettingName.maxConnectionsPerOrigin.variable(for: "up") == "MUSTER_MAX_CONNECTIONS_PER_ORIGIN")
        #expect(SettingName.sessionTTL.variable(for: "serve") == "MUSTER_SESSION_TTL")
    }

    /// A variable that a shell has for one command must not choose or change anything for another.
    @Test(arguments: [
        SettingName.group, .groups, .types, .state, .subscription, .consumer, .after, .manifest, .digest, .priority,
        .weight,
        .rate, .maxConnections, .between, .timeZone, .rateBetween, .deadline, .onDeadline, .open, .reopen, .files,
        .deep, .repair, .pauseUntil,
        .secretFile, .locationTrusted, .acceptUnframed,
    ])
    func settingThatChoosesOrChangesAThingHasNoVariable(name: SettingName) throws {
        let variable = "MUSTER_" + name.rawValue.uppercased().split(separator: "-").joined(separator: "_")
        for command in MusterCommand.names {
            #expect(
                try settings(environment: [variable: "true"], command: command).texts(of: name).isEmpty, "\(command)")
        }
        #expect(try settings(file: "{\"\(name.rawValue)\": \"x\"}").texts(of: name) == ["x"])
    }

    @Test func theSinksOfAWorkerAreNotTheSinkOfAGroup() throws {
        let environment = ["MUSTER_SINK": "archive=/srv"]
        #expect(try settings(environment: environment, command: "work").texts(.sink) == ["archive=/srv"])
        #expect(try settings(environment: environment, command: "add").texts(.sink).isEmpty)
    }

    @Test func secretsAndListsAreTheseAlone() {
        #expect(
            SettingName.secrets == [
                .token, .workerToken, .database, .header, .proxy, .cookie, .user, .resolver,
            ])
        #expect(
            SettingName.lists == [
                .sink, .newDirectory, .host, .allowAddress, .header, .cookie, .secretVariable, .secretDirectory,
                .rateBetween,
                .after, .types,
            ])
    }

    @Test func everySettingHasAKeyInTheFile() throws {
        for name in SettingName.allCases where name != .exitWithParent {
            #expect(try settings(file: "{\"\(name.rawValue)\": \"x\"}").texts(name) == ["x"] || !name.isList, "\(name)")
            #expect(try name.isList || settings(file: "{\"\(name.rawValue)\": \"x\"}").text(name) == "x", "\(name)")
        }
    }

    @Test func anEmptyVariableIsNotSet() throws {
        #expect(try settings(environment: ["MUSTER_TOKEN": ""], file: #"{"token": "t"}"#).text(.token) == "t")
    }

    @Test func theFileIsAlsoNamedByTheEnvironment() throws {
        let path = FileManager.default.temporaryDirectory.path + "/muster-settings-\(RandomToken.make()).json"
        #expect(FileManager.default.createFile(atPath: path, contents: Data(#"{"name": "n"}"#.utf8)))
        defer { try? FileManager.default.removeItem(atPath: path) }
        let settings = try Settings(
            command: "work",
            arguments: [:],
            configuration: nil,
            environment: ["MUSTER_CONFIG": path]
        )
        #expect(settings.text(.name) == "n")
    }

    @Test func listsAreSeparatedByCommasInTheEnvironmentAndAreListsInTheFile() throws {
        #expect(try settings(environment: ["MUSTER_SINK": "a=/x,b=/y"]).texts(.sink) == ["a=/x", "b=/y"])
        #expect(try settings(file: #"{"sink": ["a=/x", "b=/y"]}"#).texts(.sink) == ["a=/x", "b=/y"])
        #expect(try settings([.sink: ["c=/z"]], environment: ["MUSTER_SINK": "a=/x"]).texts(.sink) == ["c=/z"])
    }

    @Test func aSectionOfTheFileHoldsForItsCommandAlone() throws {
        let file = #"{"sink": "plain", "work": {"sink": ["default=/srv"]}}"#
        #expect(try settings(file: file, command: "work").texts(.sink) == ["default=/srv"])
        #expect(try settings(file: file, command: "add").texts(.sink) == ["plain"])
    }

    @Test(arguments: [
        (#"{"slotz": 1}"#, "slotz"), (#"{"get": {"slotz": 1}}"#, "get.slotz"), (#"{"slots": [1]}"#, "slots"),
        (#"{"exit-with-parent": true}"#, "exit-with-parent"), ("[]", "object"), ("{", "not JSON"),
    ])
    func mistakesInTheFileAreRefused(file: String, word: String) throws {
        do {
            _ = try settings(file: file)
            Issue.record("accepted")
        } catch CommandFailure.usage(let text) {
            #expect(text.contains(word))
        }
    }

    @Test func flagsAreReadFromWordsAndNumbers() throws {
        for word in ["1", "true", "YES", "on"] { #expect(try settings(environment: ["MUSTER_JSON": word]).flag(.json)) }
        for word in ["0", "false", "no", "off"] {
            #expect(try !settings(environment: ["MUSTER_JSON": word]).flag(.json))
        }
        #expect(throws: CommandFailure.self) { try settings(environment: ["MUSTER_JSON": "perhaps"]).flag(.json) }
        #expect(try settings(file: #"{"json": true}"#).flag(.json))
    }

    @Test func durationsAndSizesAreParsedAndRefusedWithTheRule() throws {
        #expect(try settings([.timeout: ["500ms"]]).duration(.timeout) == .milliseconds(500))
        #expect(try settings([.timeout: ["7d"]]).duration(.timeout) == .seconds(7 * 86_400))
        #expect(try settings([.minimumChunk: ["8MiB"]]).size(.minimumChunk) == .mebibytes(8))
        #expect(try settings([.minimumChunk: ["123"]]).size(.minimumChunk)?.bytes == 123)
        #expect(throws: CommandFailure.self) { try settings([.timeout: ["10"]]).duration(.timeout) }
        #expect(throws: CommandFailure.self) { try settings([.minimumChunk: ["8Mb"]]).size(.minimumChunk) }
    }

    @Test func aRefusalShowsTheValueUnlessItIsSecret() throws {
        let settings = try settings([.slots: ["many"], .token: ["hush"], .database: ["postgresql://u:hush@h/d"]])
        #expect(settings.refusal(.slots, "must be few").message?.contains("many") == true)
        #expect(settings.refusal(.token, "must be long").message?.contains("hush") == false)
        #expect(settings.refusal(.database, "must be a URL").message?.contains("hush") == false)
    }

    @Test(arguments: [
        ("10MiB/s", 10 << 20), ("500KiB/s", 500 << 10), ("1.5MiB/s", 3 << 19), ("2000", 2_000), ("2MiB", 2 << 20),
        ("1B/s", 1), ("2M", 2 << 20), ("2m/s", 2 << 20), ("20MB", 20_000_000), ("2MB/s", 2_000_000),
    ])
    func aRateIsASizeASecond(text: String, rate: Int64) throws {
        #expect(try settings([.rate: [text]]).rate(.rate) == rate)
    }

    @Test(arguments: ["0", "10Mb/s", "10Mbps", "-1", "fast", "10MiB/m", "/s", "2000000TiB/s"])
    func invalidRateIsRefused(text: String) {
        #expect(throws: CommandFailure.self) { try settings([.rate: [text]]).rate(.rate) }
    }

    @Test func aListThatHasOneValueHereIsReadAsOne() throws {
        #expect(try settings([.after: ["12"]]).number(.after, in: 0...99) == 12)
        #expect(throws: CommandFailure.self) { try settings([.after: ["1", "2"]]).number(.after, in: 0...99) }
    }

    @Test func aNumberOutOfBoundsIsRefused() throws {
        #expect(throws: CommandFailure.self) { try settings([.slots: ["0"]]).number(.slots, in: Limits.slots) }
        #expect(throws: CommandFailure.self) { try settings([.slots: ["1.5"]]).number(.slots, in: Limits.slots) }
    }
}
