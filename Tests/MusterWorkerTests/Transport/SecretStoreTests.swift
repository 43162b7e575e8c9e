import FoundationEssentials
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

@testable import MusterWorker

@Suite struct SecretStoreTests {
    private static let own = "https://files.example.org/a/b?c"
    private static let foreign = [
        "https://files.example.org:444/", "http://files.example.org/", "https://attacker.example/", "nonsense",
    ]
    private let environment: @Sendable (String) -> String? = { name in
        ["TOKEN": "t0p", "MUSTER_TOKEN": "own", "LINES": "a\nb"][name]
    }

    /// A store, bound to `url`, that grants these to one origin, or to anyone.
    private func store(
        variables: [String] = [], directories: [String] = [], files: [String] = [],
        receiver: SecretGrants.Receiver = .anyone, url: String = own
    ) -> SecretStore {
        var grants = SecretGrants()
        for name in variables { grants.variables[name] = [receiver] }
        for path in directories { grants.directories[path] = [receiver] }
        grants.files = Set(files)
        return SecretStore(grants: grants, environment: environment).sending(to: url)
    }

    private func refusal(_ store: SecretStore, _ secret: String) -> SecretRefusal? {
        do throws(SecretRefusal) {
            _ = try store.text(of: Secret(secret))
            return nil
        } catch {
            return error
        }
    }

    @Test func givenValuesAndGrantedVariablesAreRead() throws {
        let store = store(variables: ["TOKEN", "NONE"])
        try #expect(store.text(of: Secret("value:env:TOKEN")) == "env:TOKEN")
        try #expect(store.text(of: Secret("plain")) == "plain")
        try #expect(store.text(of: Secret("env:TOKEN")) == "t0p")
        #expect(refusal(store, "env:NONE")?.description == "env:NONE is not set")
    }

    @Test func mustersOwnVariablesAreNeverSent() {
        #expect(refusal(store(), "env:MUSTER_TOKEN") != nil)
        #expect(refusal(store(variables: ["MUSTER_TOKEN"]), "env:MUSTER_TOKEN") != nil)
    }

    @Test func secretThatTheOperatorDidNotNameIsNotRead() {
        #expect(
            refusal(store(), "env:TOKEN")?.reason == "is not among the variables that this worker gives to the source")
        #expect(refusal(store(), "file:/etc/hostname")?.reason == "is no file that this worker gives to the source")
        #expect(throws: SecretRefusal.self) { try store().file("/etc/hostname") }
    }

    @Test func aSecretGoesToItsReceiverAlone() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path.appending("token").string
        try Data("abc\n".utf8).write(to: URL(filePath: path))
        let receiver = SecretGrants.Receiver.origin(try SourceURL(validating: Self.own).origin)
        let own = store(variables: ["TOKEN"], directories: [directory.path.string], receiver: receiver)
        try #expect(own.text(of: Secret("env:TOKEN")) == "t0p")
        try #expect(own.text(of: Secret("file:\(path)")) == "abc")
        for url in Self.foreign {
            let foreign = store(
                variables: ["TOKEN"], directories: [directory.path.string], receiver: receiver, url: url)
            #expect(refusal(foreign, "env:TOKEN") != nil, "\(url)")
            #expect(refusal(foreign, "file:\(path)") != nil, "\(url)")
            #expect(throws: SecretRefusal.self) { try foreign.file(path) }
        }
        // A store that is not yet bound to a URL gives no secret that has a receiver.
        var grants = SecretGrants()
        grants.variables["TOKEN"] = [receiver]
        #expect(refusal(SecretStore(grants: grants, environment: environment), "env:TOKEN") != nil)
    }

    @Test func textsThatWouldBreakALineAreRefusedWithoutBeingShown() {
        let lines = refusal(store(variables: ["LINES"]), "env:LINES")
        #expect(lines?.description == "env:LINES has a line break or another control character")
        #expect(refusal(store(), "secret\r\nvalue")?.description.contains("secret") == false)
    }

    @Test func filesAreReadWithoutTheirLastLineBreak() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path.appending("token").string
        let store = store(files: [path])
        for (content, text) in [("abc\n", "abc"), ("abc\r\n", "abc"), ("abc", "abc"), ("", "")] {
            try Data(content.utf8).write(to: URL(filePath: path))
            try #expect(store.text(of: Secret("file:\(path)")) == text)
        }
        try Data("a\n\n".utf8).write(to: URL(filePath: path))
        #expect(refusal(store, "file:\(path)") != nil, "one line break is the file's, two are not")
        try Data([0xff, 0xfe]).write(to: URL(filePath: path))
        #expect(refusal(store, "file:\(path)")?.reason == "is not UTF-8")
    }

    @Test func onlySmallRegularFilesAreSecrets() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path.appending("large").string
        let store = store(files: [path, directory.path.string, "/dev/null", ""])
        try Data(repeating: 0x61, count: Int(SecretStore.limitBytes)).write(to: URL(filePath: path))
        try #expect(store.text(of: Secret("file:\(path)")).utf8.count == Int(SecretStore.limitBytes))
        try Data(repeating: 0x61, count: Int(SecretStore.limitBytes) + 1).write(to: URL(filePath: path))
        #expect(refusal(store, "file:\(path)") != nil)
        #expect(refusal(store, "file:\(directory.path.string)") != nil)
        #expect(refusal(store, "file:/dev/null") != nil)
        #expect(refusal(store, "file:") != nil)
    }

    @Test func noLinkLeadsOutOfADirectory() throws {
        let directory = try TemporaryDirectory()
        let inside = directory.path.appending("secrets")
        let outside = directory.path.appending("secrets-not").string
        try FileManager.default.createDirectory(atPath: inside.string, withIntermediateDirectories: false)
        for path in [inside.appending("token").string, outside] {
            try Data("abc\n".utf8).write(to: URL(filePath: path))
        }
        let links = [("out", outside), ("in", inside.appending("token").string)]
        for (name, target) in links {
            try FileManager.default.createSymbolicLink(
                atPath: inside.appending(name).string,
                withDestinationPath: target
            )
        }
        let store = store(directories: [inside.string])
        try #expect(store.text(of: Secret("file:\(inside.appending("token"))")) == "abc")
        try #expect(store.text(of: Secret("file:\(inside.appending("in"))")) == "abc")
        try #expect(store.file(inside.appending("in").string) == store.file(inside.appending("token").string))
        let elsewhere = [
            outside, "\(inside)/out", "\(inside)/../secrets-not", "\(inside)/none", "/etc/hostname", "/none",
        ]
        let reasons = elsewhere.map { refusal(store, "file:\($0)")?.reason }
        #expect(
            Set(reasons) == ["is no file that this worker gives to the source"], "no reason tells what exists elsewhere"
        )
        #expect(throws: SecretRefusal.self) { try store.file(outside) }
    }

    @Test func aNamedFileMayBeALink() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path.appending("token").string
        let link = directory.path.appending("link").string
        try Data("abc\n".utf8).write(to: URL(filePath: path))
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
        try #expect(store(files: [link]).text(of: Secret("file:\(link)")) == "abc")
        #expect(refusal(store(files: [link]), "file:\(path)") != nil)
    }
}
