import MusterCore
import Testing

@testable import MusterWorker

@Suite struct SourceGuardTests {
    private let strict = AddressGuard(refusesPrivate: true)

    @Test func guardAllowsAllUntilASessionBringsARule() {
        let sources = SourceGuard()
        #expect(sources.allows("127.0.0.1"))
        sources.adopt(strict)
        #expect(!sources.allows("127.0.0.1"))
        #expect(sources.allows("93.184.216.34"))
        sources.adopt(AddressGuard(refusesPrivate: false))
        #expect(sources.allows("127.0.0.1"))
        sources.adopt(strict)
        sources.adopt(nil)
        #expect(sources.allows("127.0.0.1"))
    }

    @Test func predicateOfTheWorkerRefusesBesides() {
        let sources = SourceGuard(besides: { $0 != "93.184.216.34" })
        #expect(!sources.allows("93.184.216.34"))
        sources.adopt(AddressGuard(refusesPrivate: true, allowed: [AddressRange("93.184.216.0/24")].compactMap(\.self)))
        #expect(!sources.allows("93.184.216.34"))
        #expect(sources.allows("93.184.216.35"))
    }

    @Test(arguments: [
        "http://127.0.0.1/f", "http://localhost/f", "https://LOCALHOST.:8080/f", "http://a.localhost/f",
        "http://10.1.2.3:80/f", "http://[::1]/f", "http://[fe80::1%25eth0]/f", "http://127.1/f", "http://2130706433/f",
        "http://0x7f000001/f", "http://0177.0.0.1/f", "http://user@127.0.0.1/f", "http://example.org@127.0.0.1/f",
        "http://169.254.169.254/latest", "http://[::ffff:127.0.0.1]/", "not a url",
    ])
    func proxyIsNotAskedForPrivateAddresses(_ url: String) {
        let sources = SourceGuard()
        #expect(sources.refusal(byProxyOf: url) == nil)
        sources.adopt(strict)
        #expect(sources.refusal(byProxyOf: url) != nil)
    }

    @Test(arguments: [
        "http://example.org/127.0.0.1", "https://93.184.216.34:8443/f", "http://127.0.0.1.example.org/f",
        "http://[2606:2800:220:1::1]/f", "http://example.org?@127.0.0.1/", "http://localhost.example.org/f",
    ])
    func proxyIsAskedForWhatMayBePublic(_ url: String) {
        let sources = SourceGuard()
        sources.adopt(strict)
        #expect(sources.refusal(byProxyOf: url) == nil)
    }

    @Test func allowListOpensLiteralsAndLocalhost() throws {
        let sources = SourceGuard()
        sources.adopt(AddressGuard(refusesPrivate: true, allowed: [try #require(AddressRange("127.0.0.0/8"))]))
        #expect(sources.refusal(byProxyOf: "http://127.0.0.1/f") == nil)
        #expect(sources.refusal(byProxyOf: "http://localhost/f") == nil)
        #expect(sources.refusal(byProxyOf: "http://10.0.0.1/f") != nil)
    }
}
