import FoundationEssentials
import MusterTestSupport
import Testing

@testable import MusterCore

struct SecretTests {
    @Test(
        arguments: [
            ("hunter2", .value("hunter2")), ("value:hunter2", .value("hunter2")), ("value:env:X", .value("env:X")),
            ("env:TOKEN", .environment("TOKEN")), ("file:/run/token", .file("/run/token")), ("", .value("")),
            ("Bearer env:X", .value("Bearer env:X")), ("ENV:X", .value("ENV:X")), ("value:", .value("")),
        ] as [(String, Secret.Form)]
    )
    func prefixSaysHowItIsGiven(given: String, form: Secret.Form) throws {
        let secret = Secret(given)
        #expect(secret.form == form)
        #expect(secret.given == given)
        let json = try JSONEncoder().encode([secret])
        #expect(json == (try JSONEncoder().encode([given])))
        #expect(try JSONDecoder().decode([Secret].self, from: json) == [secret])
    }

    @Test(
        arguments: [
            ("anything: even this", true), ("", true), ("env:TOKEN_2", true), ("env:_", true), ("env:", false),
            ("env:2", false), ("env:A B", false), ("env:A=B", false), ("env:Ä", false), ("file:/a", true),
            ("file:", false), ("file:a", false), ("file:../a", false), ("file:/a\0b", false), ("file:~/a", false),
            ("value:file:a", true),
        ])
    func malformedReferenceIsRecognized(given: String, isWellFormed: Bool) {
        #expect(Secret(given).isWellFormed == isWellFormed)
    }

    @Test(arguments: ["hunter2", "value:hunter2", "env:hunter2", "file:/hunter2"])
    func secretIsNeverShown(given: String) {
        let secret = Secret(given)
        var dumped = ""
        dump(["a": [secret]], to: &dumped)
        let shown = [
            "\(secret)", String(describing: secret), String(reflecting: secret), "\([secret])",
            String(reflecting: ["a": secret]), dumped, "\(Optional(secret) as Any)", secret.debugDescription,
        ]
        #expect(shown.allSatisfy { !$0.contains("hunter2") }, "\(shown)")
        #expect(Mirror(reflecting: secret).children.isEmpty)
    }
}

struct Base64Tests {
    @Test(
        arguments: [
            ("", []), ("AA==", [0]), ("AA", [0]), ("AAA=", [0, 0]), ("AAA", [0, 0]), ("AAAA", [0, 0, 0]),
            ("////", [255, 255, 255]), ("+/8=", [251, 255]), ("TXVzdGVy", Array("Muster".utf8)),
        ] as [(String, [UInt8])]
    )
    func textsAreDecoded(text: String, bytes: [UInt8]) {
        #expect(Base64.decode(text[...]) == bytes)
    }

    @Test(arguments: [
        "A", "A===", "AA=", "AAA==", "AAAA=", "=", "====", "A=A=", "AA==AA==", "A-_A", "AA A", "AAAAÄ", "\0",
    ])
    func whatIsNoneIsRefused(text: String) {
        #expect(Base64.decode(text[...]) == nil)
    }

    @Test(arguments: 0..<200 as Range<UInt64>)
    func anyBytesSurvive(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let bytes = (0..<Int.random(in: 0...70, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
        let text = Data(bytes).base64EncodedString()
        #expect(Base64.decode(text[...]) == bytes, "seed \(seed)")
        #expect(Base64.decode(text.prefix { $0 != "=" }) == bytes, "seed \(seed)")
    }
}
