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
        "http://169.254.169.254/latest", "http://[::ffff:127.0.0.1]/", "http://example.org\\@127.0.0.1/f",
        "not a url",
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

    @Test(arguments: [
        "http://intranet/f", "http://db.internal/f", "http://printer.local./f", "http://router.home.arpa/",
        "http://b%6ca.example.org.invalid/", "http://b\u{fc}cher.invalid/", "http://127.0.0.1/",
    ])
    func proxyIsNotAskedForNamesThatMayBeInternal(_ url: String) {
        let sources = SourceGuard()
        #expect(sources.refusal(byResolving: url) == nil && !sources.mustResolve(url))
        sources.adopt(strict)
        #expect(sources.refusal(byResolving: url) != nil)
        #expect(sources.refusal(byResolving: url) != nil, "a refusal is not remembered as a permission")
    }

    @Test func nameThatOnlyTheProxyKnowsIsLookedUpOnce() {
        let sources = SourceGuard()
        sources.adopt(strict)
        let url = "http://files.example.invalid/f"
        #expect(sources.mustResolve(url))
        #expect(!ProxiedRedirects(sources).allows(url))
        #expect(sources.refusal(byResolving: url) == nil)
        #expect(!sources.mustResolve(url))
        #expect(ProxiedRedirects(sources).allows(url))
        sources.adopt(strict)
        #expect(sources.mustResolve(url), "a new rule needs a new look")
    }

    @Test func redirectsOfProxiedRequestsStopAtHostsThatWereNotLookedUp() {
        let open = ProxiedRedirects(nil)
        #expect(open.allows("http://127.0.0.1/"))
        let sources = SourceGuard()
        sources.adopt(strict)
        let redirects = ProxiedRedirects(sources)
        #expect(redirects.allows("http://93.184.216.34/"))
        #expect(!redirects.allows("http://10.0.0.1/f"))
        #expect(redirects.next() == "http://10.0.0.1/f")
        for number in 0..<20 {
            #expect(!redirects.allows("http://h\(number).example.invalid/"))
            #expect((redirects.next() != nil) == (number < 9), "an origin that names ever more hosts comes to an end")
        }
    }

    @Test func namesOfThisMachineAreResolved() throws {
        let host = try #require(URLHost(of: "http://localhost/"))
        #expect(host.addresses().allSatisfy { ["127.0.0.1", "::1"].contains($0) } && !host.addresses().isEmpty)
    }

    @Test func allowListOpensLiteralsAndLocalhost() throws {
        let sources = SourceGuard()
        sources.adopt(AddressGuard(refusesPrivate: true, allowed: [try #require(AddressRange("127.0.0.0/8"))]))
        #expect(sources.refusal(byProxyOf: "http://127.0.0.1/f") == nil)
        #expect(sources.refusal(byProxyOf: "http://localhost/f") == nil)
        #expect(sources.refusal(byProxyOf: "http://10.0.0.1/f") != nil)
    }
}
