import ArgumentParser
import FoundationEssentials
import MusterAPI
import MusterCore
import Testing

@testable import MusterCommandLine

@Suite("Arguments")
struct ArgumentTests {
    @Test(arguments: [
        ("127.0.0.1:7300", "127.0.0.1", 7300, "http://127.0.0.1:7300"),
        ("[::1]:7300", "::1", 7300, "http://[::1]:7300"),
        ("localhost:0", "localhost", 0, "http://localhost:0"), ("0.0.0.0:80", "0.0.0.0", 80, "http://127.0.0.1:80"),
        ("[::]:80", "::", 80, "http://[::1]:80"),
    ])
    func aListenAddressIsHostAndPort(text: String, host: String, port: Int, url: String) {
        let address = ListenAddress(text)
        #expect(address == ListenAddress(host: host, port: port))
        #expect(address?.description == text)
        #expect(address?.url == url)
    }

    @Test(arguments: [
        "", "7300", ":7300", "host", "host:", "host:65536", "host:-1", "::1:7300", "[x]:1", "a b:1", "h:+1",
    ])
    func invalidListenAddressIsRefused(text: String) {
        #expect(ListenAddress(text) == nil)
    }

    @Test func aSinkIsANameAndADirectory() throws {
        #expect(try SinkArgument("default=/srv", base: "/b") == SinkArgument(name: "default", directory: "/srv"))
        #expect(try SinkArgument("a=x=y", base: "/b").directory == "/b/x=y")
        #expect(try SinkArgument("a=.", base: "/b").directory == "/b")
        for text in ["default", "=x", "a=", "a b=/x"] {
            #expect(throws: CommandFailure.self) { try SinkArgument(text, base: "/b") }
        }
    }

    @Test func aCommaInAPathSurvivesTheEnvironment() throws {
        let sinks = try SinkArgument.list(["a=/x", "y", "b=/z"], base: "/b")
        #expect(sinks == [SinkArgument(name: "a", directory: "/x,y"), SinkArgument(name: "b", directory: "/z")])
    }

    @Test func aSinkGivenTwiceIsRefused() {
        #expect(throws: CommandFailure.self) { try SinkArgument.list(["a=/x", "a=/y"], base: "/b") }
    }

    @Test func aDirectoryIsMadeWithItsParentsAndThatIsSaid() throws {
        let base = FileManager.default.temporaryDirectory.path + "/muster-named-\(RandomToken.make())"
        try FileManager.default.createDirectory(atPath: base, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: base) }
        #expect(try Directories.makeNamed(base + "/a"))
        #expect(try !Directories.makeNamed(base + "/a"))
        #expect(try Directories.makeNamed(base + "/b/files"))
        #expect(FileManager.default.createFile(atPath: base + "/file", contents: nil))
        #expect(throws: CommandFailure.self) { try Directories.makeNamed(base + "/file") }
    }

    @Test func aDigestHasAnAlgorithmAndAsManyDigitsAsItNeeds() throws {
        let hexadecimal = String(repeating: "aB", count: 32)
        for name in ["sha256", "SHA256", "sha-256", "SHA-256"] {
            #expect(try DigestArgument("\(name):\(hexadecimal)").document == ["sha256": hexadecimal.lowercased()])
        }
        for text in ["sha256:12", hexadecimal, "crc:12", "sha256:" + String(repeating: "g", count: 64)] {
            #expect(throws: CommandFailure.self) { try DigestArgument(text) }
        }
    }

    @Test func globalOptionsMayStandBeforeTheCommand() {
        #expect(ArgumentOrder.normalized(["--json", "status", "g"]) == ["status", "--json", "g"])
        #expect(
            ArgumentOrder.normalized(["--server", "http://a", "--token=t", "wait", "g"])
                == ["wait", "--server", "http://a", "--token=t", "g"]
        )
        #expect(ArgumentOrder.normalized(["--json", "origins", "set", "o"]) == ["origins", "set", "--json", "o"])
        #expect(ArgumentOrder.normalized(["--json", "origins"]) == ["origins", "--json"])
        #expect(ArgumentOrder.normalized(["status", "--json"]) == ["status", "--json"])
        #expect(ArgumentOrder.normalized(["--version"]) == ["--version"])
        #expect(ArgumentOrder.normalized(["--json", "--help"]) == ["--json", "--help"])
        #expect(ArgumentOrder.normalized(["--json"]) == ["--json"])
        #expect(ArgumentOrder.normalized([]).isEmpty)
    }

    @Test func aSecondManifestIsRefusedNotTakenForTheFirst() throws {
        for command in [["get"], ["add", "g"]] {
            #expect(throws: (any Error).self) { try MusterCommand.parseAsRoot(command + ["-i", "a", "-i", "b"]) }
            _ = try MusterCommand.parseAsRoot(command + ["-i", "a"])
        }
    }
}
