import FoundationEssentials
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

@testable import MusterWorker

@Suite struct SecretStoreTests {
    private let environment: @Sendable (String) -> String? = { name in
        ["TOKEN": "t0p", "MUSTER_TOKEN": "own", "LINES": "a\nb"][name]
    }

    private func store(
        _ scope: SecretStore.Scope,
        variables: [String] = [],
        directory: String? = nil
    ) -> SecretStore {
        SecretStore(scope: scope, variables: variables, directory: directory, environment: environment)
    }

    private func refusal(_ store: SecretStore, _ secret: String) -> SecretRefusal? {
        do throws(SecretRefusal) {
            _ = try store.text(of: Secret(secret))
            return nil
        } catch {
            return error
        }
    }

    @Test func givenValuesAndVariablesAreRead() throws {
        let store = store(.local)
        try #expect(store.text(of: Secret("value:env:TOKEN")) == "env:TOKEN")
        try #expect(store.text(of: Secret("plain")) == "plain")
        try #expect(store.text(of: Secret("env:TOKEN")) == "t0p")
        #expect(refusal(store, "env:NONE")?.description == "env:NONE is not set on this worker")
    }

    @Test func mustersOwnVariablesAreNobodysToSend() {
        #expect(refusal(store(.local), "env:MUSTER_TOKEN") != nil)
        #expect(refusal(store(.listed, variables: ["MUSTER_TOKEN"]), "env:MUSTER_TOKEN") != nil)
    }

    @Test func foreignCoordinatorReadsOnlyWhatTheOperatorNamed() throws {
        #expect(refusal(store(.listed), "env:TOKEN") != nil)
        try #expect(store(.listed, variables: ["TOKEN"]).text(of: Secret("env:TOKEN")) == "t0p")
    }

    @Test func textsThatWouldBreakALineAreRefusedWithoutBeingShown() {
        let lines = refusal(store(.local), "env:LINES")
        #expect(lines?.description == "env:LINES has a line break or another control character")
        #expect(refusal(store(.local), "secret\r\nvalue")?.description.contains("secret") == false)
    }

    @Test func filesAreReadWithoutTheirLastLineBreak() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path.appending("token").string
        let store = store(.local)
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
        try Data(repeating: 0x61, count: Int(SecretStore.limitBytes)).write(to: URL(filePath: path))
        try #expect(store(.local).text(of: Secret("file:\(path)")).utf8.count == Int(SecretStore.limitBytes))
        try Data(repeating: 0x61, count: Int(SecretStore.limitBytes) + 1).write(to: URL(filePath: path))
        #expect(refusal(store(.local), "file:\(path)") != nil)
        #expect(refusal(store(.local), "file:\(directory.path.string)") != nil)
        #expect(refusal(store(.local), "file:/dev/null") != nil)
        #expect(refusal(store(.local), "file:") != nil)
    }

    @Test func foreignCoordinatorIsHeldToOneDirectory() throws {
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
        let store = store(.listed, directory: inside.string)
        try #expect(store.text(of: Secret("file:\(inside.appending("token"))")) == "abc")
        try #expect(store.text(of: Secret("file:\(inside.appending("in"))")) == "abc")
        try #expect(store.file(inside.appending("in").string) == store.file(inside.appending("token").string))
        let elsewhere = [
            outside, "\(inside)/out", "\(inside)/../secrets-not", "\(inside)/none", "/etc/hostname", "/none",
        ]
        let reasons = elsewhere.map { refusal(store, "file:\($0)")?.reason }
        #expect(
            Set(reasons) == ["is no file below this worker's secret directory"], "nobody learns what there is elsewhere"
        )
        #expect(refusal(self.store(.listed), "file:\(inside.appending("token"))") != nil)
        #expect(throws: SecretRefusal.self) { try store.file(outside) }
        #expect(throws: Never.self) { try self.store(.local).file(outside) }
    }
}
