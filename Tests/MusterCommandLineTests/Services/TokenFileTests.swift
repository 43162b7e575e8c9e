import FoundationEssentials
import Glibc
import MusterAPI
import SystemPackage
import Testing

@testable import MusterCommandLine

@Suite("The token that get and up make")
struct TokenFileTests {
    private static let address = ListenAddress(host: "127.0.0.1", port: 7301)
    private static let url = "http://127.0.0.1:7301"

    /// Runs a test with a runtime directory of its own.
    private func with(_ body: (_ path: String, _ environment: [String: String]) throws -> Void) throws {
        let path = "/tmp/muster-token-test-\(RandomToken.make())"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: path) }
        try body(path, ["XDG_RUNTIME_DIR": path])
    }

    private func mode(_ path: String) -> mode_t {
        var status = stat()
        return lstat(path, &status) == 0 ? status.st_mode & 0o7777 : 0
    }

    @Test func aCommandFindsWhatWasPublishedAtItsServer() throws {
        try with { path, environment in
            let file = try TokenFile.publish("a-token-of-16-and-more", at: Self.address, environment: environment)
            for server in [Self.url, Self.url + "/", "http://localhost:7301", "HTTP://LOCALHOST:7301/x"] {
                let token = TokenFile.find(server: server, environment: environment)
                #expect(token == "a-token-of-16-and-more", "\(server)")
            }
            for server in [
                "http://127.0.0.1:7302", "http://127.0.0.2:7301", "http://example.org:7301", "https://127.0.0.1:7301",
                "http://127.0.0.1.example.org:7301", "http://u@127.0.0.1:7301", "http://127.0.0.1", "http://[::1]:7301",
            ] {
                #expect(TokenFile.find(server: server, environment: environment) == nil, "\(server)")
            }
            #expect(mode(path + "/muster") == 0o700)
            #expect(mode(path + "/muster/127.0.0.1_7301.token") == 0o600)
            withExtendedLifetime(file) {}
        }
    }

    @Test func tokenOfADeadCoordinatorIsNotUsed() throws {
        try with { path, environment in
            var file: TokenFile? = try TokenFile.publish(
                "a-token-of-16-and-more", at: Self.address, environment: environment)
            #expect(file != nil)
            file = nil
            #expect(TokenFile.find(server: Self.url, environment: environment) == nil)
            // As after a kill: the file is there, but no process holds its lock.
            let name = path + "/muster/127.0.0.1_7301.token"
            try Data("an-old-token-of-16-and-more\n".utf8).write(to: URL(filePath: name))
            chmod(name, 0o600)
            #expect(TokenFile.find(server: Self.url, environment: environment) == nil)
            let next = try TokenFile.publish("the-next-token-of-all", at: Self.address, environment: environment)
            #expect(TokenFile.find(server: Self.url, environment: environment) == "the-next-token-of-all")
            withExtendedLifetime(next) {}
        }
    }

    @Test func tokenFileThatOthersCouldReadOrWriteIsNotBelieved() throws {
        try with { path, environment in
            let file = try TokenFile.publish("a-token-of-16-and-more", at: Self.address, environment: environment)
            let name = path + "/muster/127.0.0.1_7301.token"
            chmod(name, 0o644)
            #expect(TokenFile.find(server: Self.url, environment: environment) == nil)
            chmod(name, 0o600)
            chmod(path + "/muster", 0o755)
            #expect(TokenFile.find(server: Self.url, environment: environment) == nil)
            #expect(throws: (any Error).self) {
                _ = try TokenFile.publish("a-token-of-16-and-more", at: Self.address, environment: environment)
            }
            withExtendedLifetime(file) {}
        }
        // A symbolic link in the place of the directory is not followed.
        try with { path, environment in
            try FileManager.default.createSymbolicLink(atPath: path + "/muster", withDestinationPath: "/tmp")
            #expect(throws: (any Error).self) {
                _ = try TokenFile.publish("a-token-of-16-and-more", at: Self.address, environment: environment)
            }
        }
    }

    @Test func theTokenOfADataDirectoryLastsUntilOthersCouldReadIt() throws {
        try with { path, _ in
            let token = try TokenFile.lasting(in: FilePath(path))
            #expect(token.utf8.count >= 32)
            #expect(mode(path + "/token") == 0o600)
            #expect(try TokenFile.lasting(in: FilePath(path)) == token)
            chmod(path + "/token", 0o640)
            let next = try TokenFile.lasting(in: FilePath(path))
            #expect(next != token)
            #expect(mode(path + "/token") == 0o600)
        }
    }
}
