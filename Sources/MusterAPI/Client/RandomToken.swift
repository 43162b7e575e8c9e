/// Names and tokens that can't be guessed.
public enum RandomToken {
    /// 128 random bits in hexadecimal, from the system's generator.
    public static func make() -> String {
        var generator = SystemRandomNumberGenerator()
        return (0..<2).map { _ in
            let digits = String(generator.next() as UInt64, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }
}
