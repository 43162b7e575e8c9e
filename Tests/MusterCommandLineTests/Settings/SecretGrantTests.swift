import MusterAPI
import MusterCore
import MusterWorker
import Testing

@testable import MusterCommandLine

@Suite("Which secrets groups may name")
struct SecretGrantTests {
    private func grants(_ arguments: [SettingName: [String]]) throws -> SecretGrants {
        try Settings(command: "work", arguments: arguments, configuration: nil, environment: [:]).secretGrants(
            base: "/base")
    }

    @Test func everySecretHasItsReceivers() throws {
        let grants = try grants([
            .secretVariable: ["TOKEN=https://a.example", "TOKEN=http://b.example:8080,OPEN=*"],
            .secretDirectory: ["keys=https://a.example", "/srv/a=b=*"],
        ])
        let a = SecretGrants.Receiver.origin(try SourceURL(validating: "https://a.example/x").origin)
        let b = SecretGrants.Receiver.origin(try SourceURL(validating: "http://b.example:8080/y").origin)
        #expect(grants.variables == ["TOKEN": [a, b], "OPEN": [.anyone]])
        #expect(grants.directories == ["/base/keys": [a], "/srv/a=b": [.anyone]])
        #expect(grants.files.isEmpty)
    }

    @Test(arguments: [
        "TOKEN", "TOKEN=", "=*", "TOKEN=a.example", "TOKEN=https://a.example/path", "TOKEN=https://u@a.example",
        "TOKEN=x://a",
    ])
    func withoutAReceiverNothingIsGranted(_ text: String) {
        for name in [SettingName.secretVariable, .secretDirectory] {
            #expect(throws: CommandFailure.self) { try grants([name: [text]]) }
        }
    }

    @Test func getGrantsWhatItsCommandLineNamesAndNoMore() throws {
        let settings = try Settings(
            command: "get",
            arguments: [
                .header: ["A: env:TOKEN", "B: value:env:NOT", "C: file:keys/one"], .cookie: ["c=env:COOKIE"],
                .user: ["me:env:PASSWORD"],
                .netrc: ["/n"], .certificate: ["cert"], .key: ["key"],
            ], configuration: nil, environment: [:])
        let grants = try #require(try settings.transfers(base: "/base").fetch).grants
        #expect(grants.variables == ["TOKEN": [.anyone], "COOKIE": [.anyone], "PASSWORD": [.anyone]])
        #expect(grants.files == ["/base/keys/one", "/n", "/base/cert", "/base/key"])
        #expect(grants.directories.isEmpty)
    }
}
