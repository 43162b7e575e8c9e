import Glibc

/// SplitMix64: a random generator whose whole state is its seed, so that a failing test can be run again.
public struct SeededGenerator: RandomNumberGenerator, Sendable {
    /// The seed that it was made with.
    public let seed: UInt64
    private var state: UInt64

    /// Starts at a seed.
    public init(seed: UInt64) {
        self.seed = seed
        self.state = seed
    }

    /// The generator of a test: its seed comes from `MUSTER_TEST_SEED`, or is random; it is printed either way.
    public static func forTest(_ name: String = #function) -> SeededGenerator {
        let given = Environs.value("MUSTER_TEST_SEED").flatMap { UInt64($0) }
        let generator = SeededGenerator(seed: given ?? UInt64.random(in: .min ... .max))
        print("\(name): MUSTER_TEST_SEED=\(generator.seed)")
        return generator
    }

    /// The next 64 bits.
    public mutating func next() -> UInt64 {
        state &+= Self.increment
        return Self.mix(state)
    }

    /// A number whose order of magnitude is random too, so that small and huge ones are equally likely.
    public mutating func magnitude(upTo bits: Int) -> Int64 {
        let width = Int.random(in: 0...bits, using: &self)
        return Int64.random(in: 0...(1 << width), using: &self)
    }

    static let increment: UInt64 = 0x9e37_79b9_7f4a_7c15

    /// The mixing function, by which the n-th number can be computed without those before it.
    static func mix(_ state: UInt64) -> UInt64 {
        var bits = state
        bits = (bits ^ (bits >> 30)) &* 0xbf58_476d_1ce4_e5b9
        bits = (bits ^ (bits >> 27)) &* 0x94d0_49bb_1331_11eb
        return bits ^ (bits >> 31)
    }
}

/// The environment of the test process.
enum Environs {
    static func value(_ name: String) -> String? {
        guard let text = getenv(name) else { return nil }
        return String(cString: text)
    }
}
