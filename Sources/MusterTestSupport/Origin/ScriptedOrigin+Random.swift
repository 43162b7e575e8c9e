extension ScriptedOrigin {
    /// Misbehaves at random: each request of the path does with this probability, in one of these ways.
    ///
    /// What happens follows from the seed, the path and the number of the request alone; the numbers follow the order of
    /// arrival. Misbehaviours that the origin's transport does not have are left out. ``Request/misbehaviours`` tells what
    /// was played.
    public func misbehaveAtRandom(_ path: String, seed: UInt64, rate: Double, from misbehaviours: [Misbehaviour]) {
        let rule = RandomRule(seed: seed, rate: rate, misbehaviours: misbehaviours)
        state.update { $0.randomRules[path] = rule }
    }

    struct RandomRule: Sendable {
        let seed: UInt64
        let rate: Double
        let misbehaviours: [Misbehaviour]

        func misbehaviour(path: String, number: Int, over transport: Transport) -> Misbehaviour? {
            let playable = misbehaviours.filter { $0.isPlayable(over: transport) }
            var generator = SeededGenerator(seed: Chance.number(seed: seed, path: path, request: number))
            guard Double.random(in: 0..<1, using: &generator) < rate else { return nil }
            return playable.randomElement(using: &generator)
        }
    }
}

/// Randomness without state: the number for the n-th request can be computed without those before it.
enum Chance {
    /// A number derived from the seed, the path and the number of the request.
    static func number(seed: UInt64, path: String, request: Int) -> UInt64 {
        // FNV-1a, since the standard library's hashes differ from process to process.
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in path.utf8 { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01b3 }
        return SeededGenerator.mix(seed &+ SeededGenerator.mix(hash &+ UInt64(request) &* SeededGenerator.increment))
    }

    /// An index below a count, which is not 0.
    static func index(below count: Int, seed: UInt64, path: String, request: Int) -> Int {
        Int(number(seed: seed, path: path, request: request) % UInt64(count))
    }
}
