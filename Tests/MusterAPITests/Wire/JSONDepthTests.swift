import MusterAPI
import MusterCore
import Testing

/// Documents of many levels cost the decoder far more than their size (I19).
@Suite struct JSONDepthTests {
    @Test func documentsUpToTheBoundAreTakenAndDeeperOnesRefused() throws {
        let most = Limits.jsonDepth
        let nested = { (levels: Int) in
            String(repeating: "[", count: levels) + String(repeating: "]", count: levels)
        }
        try JSONDepth.check(nested(most).utf8)
        try JSONDepth.check((1...1_000).map { _ in nested(most / 2) }.joined(separator: ",").utf8)
        let refusal = #expect(throws: InputRefusal.self) { try JSONDepth.check(nested(most + 1).utf8) }
        #expect(refusal?.reason == "is nested deeper than 64 levels")
        #expect(throws: InputRefusal.self) {
            try JSONDepth.check(String(repeating: #"{"a":"#, count: most + 1).utf8)
        }
    }

    @Test(arguments: ["[", #"\"["#, #"\\\"["#, #"[\\"#]) func bracketsInStringsDoNotCount(text: String) throws {
        let document = "[" + (1...200).map { _ in "\"" + text + "\"" }.joined(separator: ",") + "]"
        try JSONDepth.check(document.utf8)
    }
}
