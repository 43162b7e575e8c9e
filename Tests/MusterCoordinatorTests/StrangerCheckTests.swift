import MusterAPI
import Testing

@testable import MusterCoordinator

@Suite("Which hosts and pages a coordinator takes for its own")
struct StrangerCheckTests {
    private func code(_ check: StrangerCheck, _ host: String?, _ origins: [String] = []) -> Problem.Code? {
        do {
            try check.check(authority: host, origins: origins)
            return nil
        } catch {
            return error.code
        }
    }

    @Test(arguments: ["127.0.0.1", "localhost", "::1", "[::1]", "127.3.2.1"])
    func onLoopbackOnlyLoopbackNamesPass(_ listen: String) {
        let check = StrangerCheck(listenHost: listen, names: [])
        for host in ["localhost", "127.0.0.1:80", "[::1]:7300"] { #expect(code(check, host) == nil) }
        for host in ["example.org", "10.0.0.1", "[fe80::1]", "", nil] { #expect(code(check, host) == .foreignHost) }
    }

    @Test func aRequestWithoutAHostIsToldOfTheFieldAndNotOfAName() {
        let check = StrangerCheck(listenHost: "127.0.0.1", names: [])
        for host in ["", nil] {
            let problem = #expect(throws: Problem.self) { try check.check(authority: host, origins: []) }
            #expect(problem?.detail == "the request names no host: send the Host field, with HTTP/1.0 too")
        }
        let foreign = #expect(throws: Problem.self) { try check.check(authority: "example.org", origins: []) }
        #expect(
            foreign?.detail == #"the request is for "example.org"; a coordinator of that name has --host for it"#)
    }

    @Test func aGivenNamePassesOnAnyPortAndOthersDoNot() {
        let check = StrangerCheck(listenHost: "127.0.0.1", names: ["Muster.Example.org", "10.0.0.7"])
        for host in ["muster.example.org", "MUSTER.example.org:443", "muster.example.org.", "10.0.0.7:1"] {
            #expect(code(check, host) == nil)
        }
        for host in [
            "example.org", "x.muster.example.org", "10.0.0.8", "muster.example.org:http", "muster.example.org:70000",
        ] {
            #expect(code(check, host) == .foreignHost)
        }
    }

    @Test func theAddressThatItListensOnPasses() {
        let check = StrangerCheck(listenHost: "10.0.0.7", names: [])
        #expect(code(check, "10.0.0.7:7300") == nil)
        for host in ["10.0.0.8", "localhost", "example.org", "0.0.0.0"] { #expect(code(check, host) == .foreignHost) }
        let named = StrangerCheck(listenHost: "coordinator.example.org", names: [])
        #expect(code(named, "coordinator.example.org:7300") == nil)
        #expect(code(named, "10.0.0.7") == .foreignHost)
    }

    @Test(arguments: ["0.0.0.0", "::"])
    func coordinatorOnAllAddressesAcceptsAnyOfThemAndNoName(_ listen: String) {
        let check = StrangerCheck(listenHost: listen, names: ["muster.example.org"])
        for host in ["10.0.0.7", "127.0.0.1", "[fd00::1]:7300", "muster.example.org"] {
            #expect(code(check, host) == nil)
        }
        for host in ["attacker.example", "10.0.0.7.attacker.example", "0x7f000001.example"] {
            #expect(code(check, host) == .foreignHost)
        }
    }

    @Test func aPageIsItsOwnWithTheSameHostAndPortOrAGivenName() {
        let check = StrangerCheck(listenHost: "127.0.0.1", names: ["muster.example.org"])
        #expect(code(check, "127.0.0.1:7300", ["http://127.0.0.1:7300"]) == nil)
        #expect(code(check, "localhost", ["http://localhost"]) == nil)
        #expect(code(check, "localhost", ["https://localhost:443"]) == nil)
        #expect(code(check, "127.0.0.1:7300", ["https://muster.example.org"]) == nil)
        for origin in [
            "http://127.0.0.1", "http://localhost:7300", "null", "http://attacker.example",
            "http://127.0.0.1:7300@a.example",
        ] {
            #expect(code(check, "127.0.0.1:7300", [origin]) == .foreignOrigin, "\(origin)")
        }
        #expect(code(check, "127.0.0.1:7300", ["http://127.0.0.1:7300", "http://attacker.example"]) == .foreignOrigin)
    }

    @Test(arguments: ["http://muster.example.org", "muster.example.org:443", "a b", "", "*"])
    func anInvalidNameIsRefusedAtStart(_ name: String) {
        var configuration = CoordinatorConfiguration(database: "")
        configuration.hosts = [name]
        #expect(throws: ConfigurationRefusal.self) { try configuration.check() }
    }
}
