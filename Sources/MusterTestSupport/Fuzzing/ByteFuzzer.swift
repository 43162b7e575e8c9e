import Glibc

/// Gives a parser inputs that are nearly right: those of a corpus, and mutations of them.
///
/// A test runs 2,000 cases; `MUSTER_FUZZ_SECONDS` gives each test so many seconds instead. The cases follow from the seed, so that
/// `MUSTER_TEST_SEED` repeats them, and a failure names the seed and the input. With `MUSTER_FUZZ_TRACE=1` each input is written to
/// standard error before the parser reads it, so that the last one is the input of a crash.
public struct ByteFuzzer: Sendable {
    let corpus: [[UInt8]]
    let longestBytes: Int

    /// How many cases there are without `MUSTER_FUZZ_SECONDS`.
    private static let usualCases = 2_000

    /// A fuzzer of texts.
    ///
    /// - Parameters:
    ///   - corpus: inputs; the parser accepts at least one of them.
    ///   - longestBytes: the most bytes of an input.
    public init(_ corpus: [String], longestBytes: Int = 4_096) {
        self.init(bytes: corpus.map { Array($0.utf8) }, longestBytes: longestBytes)
    }

    /// A fuzzer of bytes.
    public init(bytes corpus: [[UInt8]], longestBytes: Int = 4_096) {
        self.corpus = corpus
        self.longestBytes = longestBytes
    }

    /// Runs the cases, the inputs of the corpus first.
    ///
    /// - Parameters:
    ///   - name: the name of the test, which is printed with the seed.
    ///   - check: reads an input and checks what was read; returns whether the parser accepted the input.
    /// - Throws: `FuzzFinding` for the first input for which `check` throws, and if no input was accepted: then nothing was checked.
    public func run(_ name: String = #function, _ check: (FuzzInput) throws -> Bool) throws {
        var random = SeededGenerator.forTest(name)
        let end = Environs.value("MUSTER_FUZZ_SECONDS").flatMap { Int64($0) }.map { ContinuousClock.now + .seconds($0) }
        let traces = Environs.value("MUSTER_FUZZ_TRACE") == "1"
        var (number, accepted) = (0, 0)
        while number < corpus.count || (end.map { ContinuousClock.now < $0 } ?? (number < Self.usualCases)) {
            let bytes = number < corpus.count ? corpus[number] : mutated(using: &random)
            let input = FuzzInput(bytes, seed: random.next())
            if traces { Self.write("\(name) \(number): \(input)\n") }
            do {
                if try check(input) { accepted += 1 }
            } catch {
                throw FuzzFinding(
                    "\(name), MUSTER_TEST_SEED=\(random.seed), case \(number): \(error)\n  input: \(input)")
            }
            number += 1
        }
        print("\(name): \(number) inputs, \(accepted) accepted")
        guard accepted > 0 else { throw FuzzFinding("\(name): none of \(number) inputs was accepted") }
    }

    /// Writes at once: a crash would lose what is buffered.
    private static func write(_ line: String) {
        let bytes = Array(line.utf8)
        _ = Glibc.write(STDERR_FILENO, bytes, bytes.count)
    }
}
