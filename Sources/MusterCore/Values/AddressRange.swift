/// A network of Internet addresses, as `10.0.0.0/8`, `fd00::/8`, or a single address.
///
/// IPv4 counts as mapped into IPv6 (RFC 4291 §2.5.5.2), so that `10.0.0.1` and `::ffff:10.0.0.1` are the same address;
/// a network as wide as `::/0` has all of IPv4 within it.
public struct AddressRange: Hashable, Sendable, Codable, CustomStringConvertible {
    /// The text as it was given.
    public let description: String
    /// The first address, 16 bytes; IPv4 as mapped into IPv6 (RFC 4291 §2.5.5.2).
    let bytes: [UInt8]
    /// How many of the 128 bits belong to the network.
    let prefix: Int

    /// Parses a single address, or a network in the notation of RFC 4632 §3.1 and RFC 4291 §2.3; `nil` for anything
    /// else. Bits after the prefix are not looked at.
    public init?(_ text: String) {
        guard let slash = text.utf8.firstIndex(of: UInt8(ascii: "/")) else {
            self.init(address: text)
            return
        }
        let network = text[..<slash]
        guard let address = NumericAddress.parse(network.utf8),
            let stated = NumericAddress.number(text[text.utf8.index(after: slash)...].utf8, atMost: 128)
        else { return nil }
        // The length of an IPv4 prefix is counted within its own 32 bits.
        let isQuad = !network.utf8.contains(UInt8(ascii: ":"))
        guard stated <= (isQuad ? 32 : 128) else { return nil }
        self.init(description: text, bytes: address, prefix: isQuad ? 96 + stated : stated)
    }

    /// Parses a single numeric address, without a prefix and without brackets; `nil` for anything else.
    init?(address text: String) {
        guard let bytes = NumericAddress.parse(text.utf8) else { return nil }
        self.init(description: text, bytes: bytes, prefix: 128)
    }

    private init(description: String, bytes: [UInt8], prefix: Int) {
        self.description = description
        self.bytes = bytes
        self.prefix = prefix
    }

    /// Reads a range.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let range = AddressRange(try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not an address or a network")
        }
        self = range
    }

    /// Writes the range as it was given.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }

    /// Whether all of another range is within this one.
    func contains(_ other: AddressRange) -> Bool {
        guard other.prefix >= prefix else { return false }
        for bit in 0..<prefix where (bytes[bit / 8] ^ other.bytes[bit / 8]) & (0x80 >> UInt8(bit % 8)) != 0 {
            return false
        }
        return true
    }

    /// The IPv4 address at which packets to this IPv6 address arrive, for the prefixes that carry one: translated (RFC 6052 §2.1, RFC 2765
    /// §2.1), tunnelled (RFC 3056 §2) and the deprecated IPv4-compatible ones (RFC 4291 §2.5.5.1). `nil` for all others; a mapped address
    /// is IPv4 already.
    var embedded: AddressRange? {
        guard prefix == 128 else { return nil }
        let quad: ArraySlice<UInt8>
        if Self.sixToFour.contains(where: { $0.contains(self) }) {
            quad = bytes[2..<6]
        } else if Self.translated.contains(where: { $0.contains(self) }), bytes.dropLast().contains(where: { $0 != 0 })
        {
            quad = bytes[12...]
        } else {
            return nil
        }
        return AddressRange(description: description, bytes: NumericAddress.mapped(quad), prefix: 128)
    }

    private static let sixToFour = ["2002::/16"].compactMap { AddressRange($0) }
    /// The last 32 bits of these addresses are an IPv4 address, except for `::` and `::1`.
    private static let translated = ["64:ff9b::/96", "::ffff:0:0:0/96", "::/96"].compactMap { AddressRange($0) }

    /// Networks that are not part of the public Internet (RFC 6890, with the current registries of special-purpose addresses, and
    /// multicast).
    static let special: [AddressRange] = specialNetworks.compactMap { AddressRange($0) }

    /// `special` as texts; a test parses each of them.
    static let specialNetworks = [
        "0.0.0.0/8",  // this network (RFC 791 §3.2)
        "10.0.0.0/8",  // private (RFC 1918)
        "100.64.0.0/10",  // shared by a provider's customers (RFC 6598)
        "127.0.0.0/8",  // loopback (RFC 1122 §3.2.1.3)
        "169.254.0.0/16",  // link-local (RFC 3927), the metadata services of clouds
        "172.16.0.0/12",  // private (RFC 1918)
        "192.0.0.0/24",  // protocol assignments (RFC 6890 §2.1)
        "192.0.2.0/24",  // documentation (RFC 5737)
        "192.88.99.0/24",  // relays of 6to4, given up (RFC 7526)
        "192.168.0.0/16",  // private (RFC 1918)
        "198.18.0.0/15",  // benchmarks (RFC 2544)
        "198.51.100.0/24",  // documentation (RFC 5737)
        "203.0.113.0/24",  // documentation (RFC 5737)
        "224.0.0.0/4",  // multicast (RFC 5771)
        "240.0.0.0/4",  // reserved, and the broadcast address (RFC 1112 §4, RFC 919 §7)
        "::/128",  // unspecified (RFC 4291 §2.5.2)
        "::1/128",  // loopback (RFC 4291 §2.5.3)
        "64:ff9b:1::/48",  // translation within a site (RFC 8215)
        "100::/64",  // discarded (RFC 6666)
        "100:0:0:1::/64",  // dummy (RFC 9780)
        "2001::/23",  // protocol assignments, Teredo among them (RFC 2928, RFC 4380)
        "2001:db8::/32",  // documentation (RFC 3849)
        "3fff::/20",  // documentation (RFC 9637)
        "5f00::/16",  // segment routing (RFC 9602)
        "fc00::/7",  // unique local (RFC 4193)
        "fe80::/10",  // link-local (RFC 4291 §2.5.6)
        "fec0::/10",  // site-local, given up (RFC 3879)
        "ff00::/8",  // multicast (RFC 4291 §2.7)
    ]
}
