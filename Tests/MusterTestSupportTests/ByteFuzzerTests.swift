import MusterTestSupport
import Testing

struct ByteFuzzerTests {
    @Test func findingNamesWhatIsWrongTheSeedAndTheInput() throws {
        let thrown = #expect(throws: FuzzFinding.self) {
            try ByteFuzzer(["ab\\"]).run("planted") { input in
                try input.expect(!input.bytes.contains(0), "it holds a NUL")
                return true
            }
        }
        let text = try #require(thrown).description
        #expect(text.contains("it holds a NUL") && text.contains("planted, MUSTER_TEST_SEED="), "\(text)")
        #expect(text.contains("\\x00"), "\(text)")
    }

    @Test func parserThatAcceptsNothingIsNotTested() {
        #expect(throws: FuzzFinding.self) { try ByteFuzzer(["a"]).run("refusing") { _ in false } }
    }

    @Test func inputsAreBoundedAndTheirPiecesAreTheWhole() throws {
        try ByteFuzzer(["", "a long text with the number 42"], longestBytes: 100).run { input in
            try input.expect(input.bytes.count <= 100, "it has \(input.bytes.count) bytes")
            try input.expect(Array(input.pieces.joined()) == input.bytes, "the pieces are another input")
            return true
        }
    }
}
