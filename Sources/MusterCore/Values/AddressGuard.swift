/// Which addresses workers may fetch from (range contract, row 39).
public struct AddressGuard: Hashable, Sendable, Codable {
    /// Whether addresses that are not of the public Internet are refused: private, loopback, link-local and similar addresses.
    public var refusesPrivate: Bool
    /// Networks that are allowed nevertheless, as `10.0.0.0/8`, `fd00::/8` or single addresses.
    public var allowed: [AddressRange]

    /// A guard.
    public init(refusesPrivate: Bool, allowed: [AddressRange] = []) {
        self.refusesPrivate = refusesPrivate
        self.allowed = allowed
    }

    /// Whether a numeric address may be connected to. A text that is no address is refused. An IPv6 address that leads to an IPv4 address
    /// is judged by the latter.
    public func allows(_ numericAddress: String) -> Bool {
        guard refusesPrivate else { return true }
        guard let address = AddressRange(address: numericAddress) else { return false }
        let target = address.embedded ?? address
        if allowed.contains(where: { $0.contains(address) || $0.contains(target) }) { return true }
        return !AddressRange.special.contains { $0.contains(target) }
    }
}
