import FoundationEssentials
import MusterTestSupport
import Testing

@testable import MusterCore

private func isPublic(_ address: String) -> Bool { AddressGuard(refusesPrivate: true).allows(address) }

struct AddressRangeTests {
    @Test(
        arguments: [
            ("0.0.0.0", "00000000000000000000ffff00000000", 128), ("1.2.3.4", "00000000000000000000ffff01020304", 128),
            ("255.255.255.255/32", "00000000000000000000ffffffffffff", 128),
            ("10.0.0.0/8", "00000000000000000000ffff0a000000", 104),
            ("0.0.0.0/0", "00000000000000000000ffff00000000", 96),
            ("::", "00000000000000000000000000000000", 128), ("::/0", "00000000000000000000000000000000", 0),
            ("::1", "00000000000000000000000000000001", 128), ("1::", "00010000000000000000000000000000", 128),
            ("1::8", "00010000000000000000000000000008", 128),
            ("2001:DB8::ff/32", "20010db80000000000000000000000ff", 32),
            ("1:2:3:4:5:6:7:8", "00010002000300040005000600070008", 128),
            ("1:2:3:4:5:6:7::", "00010002000300040005000600070000", 128),
            ("::2:3:4:5:6:7:8", "00000002000300040005000600070008", 128),
            ("::ffff:1.2.3.4", "00000000000000000000ffff01020304", 128),
            ("::1.2.3.4", "00000000000000000000000001020304", 128),
            ("1:2:3:4:5:6:1.2.3.4", "00010002000300040005000601020304", 128),
            ("64:ff9b::192.0.2.33", "0064ff9b0000000000000000c0000221", 128),
            ("fe80::1%eth0", "fe800000000000000000000000000001", 128),
            ("fe80::1%2", "fe800000000000000000000000000001", 128),
            ("fe80::%eth0/10", "fe800000000000000000000000000000", 10),
        ])
    func addressesAndNetworksAreRead(text: String, bytes: String, prefix: Int) throws {
        let range = try #require(AddressRange(text))
        #expect(ContentDigest(algorithm: .md5, bytes: range.bytes).hexadecimal == bytes)
        #expect(range.prefix == prefix)
        #expect(range.description == text)
        let json = try JSONEncoder().encode([text])
        #expect(try JSONDecoder().decode([AddressRange].self, from: json) == [range])
        #expect(try JSONEncoder().encode([range]) == json)
    }

    @Test(
        arguments: [
            "", " ", "a", "localhost", "1", "1.2", "1.2.3", "1.2.3.4.5", "1.2.3.", ".1.2.3", "1..2.3", "1.2.3.256",
            "1.2.3.-4", "1.2.3.+4", "1.2.3.4 ", " 1.2.3.4", "1.2.3.0x4", "0177.0.0.1", "127.0.0.01", "127.1",
            "2130706433",
            "0x7f000001", "1.2.3.4/", "1.2.3.4/33", "1.2.3.4/-1", "1.2.3.4/08", "1.2.3.4/+8", "1.2.3.4/8/8",
            "1.2.3.4/a",
            "/8", "1.2.3.4%eth0", "١.٢.٣.٤", "1.2.3.4\0", "1.2.3.4\u{301}",
            ":", ":::", "::1::", "1::2::3", ":1", "1:", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1:2:3:4::5:6:7:8",
            "::1:2:3:4:5:6:7:8", "12345::", "g::", "::g", "1:::2", "::1.2.3", "::1.2.3.4.5", "1.2.3.4::", "::1.2.3.4:5",
            "1:2:3:4:5:6:7:1.2.3.4", "::01.2.3.4", "[::1]", "::1/129", "::1/-1", "::1/", "::1 ", "::%", "::%/8",
            "%eth0",
            "fe80::1%" + String(repeating: "x", count: 1_000), String(repeating: "1", count: 100_000),
            String(repeating: ":", count: 100_000),
        ])
    func whatIsNoAddressIsRefused(text: String) throws {
        #expect(AddressRange(text) == nil)
        #expect(!isPublic(text))
        let json = try JSONEncoder().encode([text])
        #expect(throws: DecodingError.self) { try JSONDecoder().decode([AddressRange].self, from: json) }
    }

    @Test(
        arguments: [
            ("10.0.0.0/8", "10.255.255.255", true), ("10.0.0.0/8", "11.0.0.0", false),
            ("10.0.0.0/8", "9.255.255.255", false),
            ("10.1.2.3/8", "10.0.0.0", true), ("172.16.0.0/12", "172.31.255.255", true),
            ("172.16.0.0/12", "172.32.0.0", false), ("1.2.3.4", "1.2.3.4", true), ("1.2.3.4", "1.2.3.5", false),
            ("0.0.0.0/0", "255.255.255.255", true), ("0.0.0.0/0", "::1", false), ("::/0", "1.2.3.4", true),
            ("10.0.0.0/8", "10.0.0.0/9", true), ("10.0.0.0/8", "10.0.0.0/7", false),
            ("fd00::/8", "fdff::1", true), ("fd00::/8", "fc00::1", false), ("fe80::/10", "febf::1", true),
            ("fe80::/10", "fec0::", false), ("10.0.0.0/8", "::ffff:10.1.1.1", true),
            ("::ffff:10.0.0.0/104", "10.1.1.1", true),
        ])
    func networkContainsTheAddressesThatShareItsPrefix(network: String, other: String, contains: Bool) throws {
        #expect(try #require(AddressRange(network)).contains(try #require(AddressRange(other))) == contains)
    }

    @Test func everySpecialNetworkIsRead() {
        #expect(AddressRange.special.map(\.description) == AddressRange.specialNetworks)
    }

    /// Any address is read back from each of its written forms.
    @Test(arguments: 0..<500 as Range<UInt64>)
    func anyFormOfAnAddressIsTheSameAddress(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        // Many zeros, so that gaps of any length come up.
        let bytes = (0..<8).flatMap { _ -> [UInt8] in
            Bool.random(using: &random)
                ? [0, 0] : [UInt8.random(in: 0...255, using: &random), UInt8.random(in: 0...255, using: &random)]
        }
        let groups = (0..<8).map { UInt16(bytes[$0 * 2]) << 8 | UInt16(bytes[$0 * 2 + 1]) }
        var texts = groups.map { group in
            let digits = String(group, radix: 16, uppercase: Bool.random(using: &random))
            return String(repeating: "0", count: Int.random(in: 0...(4 - digits.count), using: &random)) + digits
        }
        if Bool.random(using: &random) {
            texts.replaceSubrange(6..., with: [bytes[12...].map { String($0) }.joined(separator: ".")])
        }
        var forms = [texts.joined(separator: ":")]
        for start in texts.indices {
            for end in (start + 1)...texts.count where texts[start..<end].allSatisfy({ $0.allSatisfy { $0 == "0" } }) {
                forms.append(texts[..<start].joined(separator: ":") + "::" + texts[end...].joined(separator: ":"))
            }
        }
        for form in forms {
            #expect(AddressRange(form)?.bytes == bytes, "seed \(seed): \(form)")
        }
    }

    private static let pieces = [
        ":", "::", ".", "/", "%", "0", "1", "ffff", "255", "256", "10.0.0.1", "127.0.0.1", "fe80", "g", "-", " ", "\0",
        "ä",
    ]

    @Test(arguments: 0..<2_000 as Range<UInt64>)
    func noTextMakesTheParserFail(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let text =
            Bool.random(using: &random)
            ? String(decoding: (0..<20).map { _ in UInt8.random(in: 0...255, using: &random) }, as: UTF8.self)
            : (0..<Int.random(in: 0...12, using: &random)).compactMap { _ in Self.pieces.randomElement(using: &random) }
                .joined()
        guard let range = AddressRange(text) else { return }
        #expect(range.bytes.count == 16, "seed \(seed)")
        #expect((0...128).contains(range.prefix), "seed \(seed)")
        #expect(range.contains(range), "seed \(seed)")
    }
}

/// Row 39 of the range contract.
struct AddressGuardTests {
    @Test(
        arguments: [
            "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255", "127.0.0.1",
            "127.255.255.254", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.8", "192.0.2.1",
            "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1",
            "239.255.255.255", "240.0.0.1", "255.255.255.255",
            "::", "::1", "fe80::1", "fe80::1%eth0", "febf::1", "fec0::1", "fc00::1", "fdff::1", "ff02::1",
            "2001:db8::1",
            "3fff::1", "2001::1", "2001:1ff::1", "100::1", "100:0:0:1::1", "64:ff9b:1::1", "5f00::1",
            // IPv4 within IPv6: mapped, compatible, translated, tunnelled.
            "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:a00:1", "::10.0.0.1", "::7f00:1", "::ffff:0:192.168.0.1",
            "64:ff9b::10.0.0.1", "64:ff9b::7f00:1", "2002:0a00:0001::1", "2002:7f00:1::", "2002:c0a8:101::8.8.8.8",
        ])
    func addressOutsideThePublicInternetIsRefused(address: String) {
        #expect(!isPublic(address))
        #expect(AddressGuard(refusesPrivate: false).allows(address))
    }

    @Test(
        arguments: [
            "1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
            "169.253.255.255", "172.15.255.255", "172.32.0.0", "192.0.1.1", "192.167.255.255", "192.169.0.0",
            "198.17.255.255", "198.20.0.0", "223.255.255.255", "2606:4700::1111", "2001:200::1", "2a00:1450::1",
            "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1", "2002:808:808::10.0.0.1", "::8.8.8.8",
        ])
    func thePublicInternetIsAllowed(address: String) {
        #expect(isPublic(address))
    }

    @Test(
        arguments: [
            ("10.1.2.3", true), ("10.2.0.0", false), ("::ffff:10.1.0.1", true), ("64:ff9b::10.1.0.1", true),
            ("2002:0a01:1::", true), ("fd00::1", true), ("fd01::1", false), ("127.0.0.1", false), ("::1", true),
            ("8.8.8.8", true),
        ])
    func allowListOpensWhatItNames(address: String, allows: Bool) throws {
        let allowed = try ["10.1.0.0/16", "fd00::/16", "::1"].map { try #require(AddressRange($0)) }
        #expect(AddressGuard(refusesPrivate: true, allowed: allowed).allows(address) == allows)
    }

    /// A network is refused, even if it is not within a special network.
    @Test(arguments: ["0.0.0.0/0", "::/0", "8.8.8.8/32", "8.0.0.0/7", "example.org", ""])
    func onlyASingleAddressIsAllowed(text: String) {
        #expect(!isPublic(text))
    }

    @Test func guardSurvivesTheWire() throws {
        let allowed = try ["10.0.0.0/8", "::1"].map { try #require(AddressRange($0)) }
        let guarded = AddressGuard(refusesPrivate: true, allowed: allowed)
        let read = try JSONDecoder().decode(AddressGuard.self, from: JSONEncoder().encode(guarded))
        #expect(read == guarded)
        #expect(!read.allows("192.168.0.1") && read.allows("10.0.0.1"))
    }

    /// An IPv4 address that is embedded in an IPv6 address is judged as the IPv4 address.
    @Test(arguments: 0..<500 as Range<UInt64>)
    func embeddedAddressIsJudgedAsItself(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let special =
            [[10, 0], [127, 0], [169, 254], [192, 168], [8, 8], [100, 64], [224, 1], [1, 1]] as [[UInt8]]
        let start = special.randomElement(using: &random) ?? []
        let quad = start + [UInt8.random(in: 0...255, using: &random), UInt8.random(in: 1...255, using: &random)]
        let text = quad.map { String($0) }.joined(separator: ".")
        let hexadecimal = ContentDigest(algorithm: .crc32c, bytes: quad).hexadecimal
        let tunnelled = "2002:\(hexadecimal.prefix(4)):\(hexadecimal.suffix(4))::1"
        for form in ["::ffff:\(text)", "::\(text)", "64:ff9b::\(text)", "::ffff:0:\(text)", tunnelled] {
            #expect(isPublic(form) == isPublic(text), "seed \(seed): \(form)")
        }
    }
}
