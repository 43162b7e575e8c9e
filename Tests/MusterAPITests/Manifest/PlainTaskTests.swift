import MusterAPI
import MusterCore
import Testing

/// Lines of simple tasks are parsed by a fast path, with the same result as the decoder's.
struct PlainTaskTests {
    private static func read(_ line: String) -> Result<[TaskSpecification], InputRefusal> {
        var parser = ManifestParser(form: .tasks)
        do {
            return .success((try parser.parse(line.utf8) + parser.finish()).map(\.task))
        } catch {
            return .failure(error)
        }
    }

    /// Parses the line with a null field that the fast path doesn't know, so that the decoder reads it.
    private static func decoded(_ line: String) -> Result<[TaskSpecification], InputRefusal> {
        guard let start = line.firstIndex(of: "{") else { return read(line) }
        return read("\(line[...start])\"headers\":null,\(line[line.index(after: start)...])")
    }

    @Test(
        arguments: [
            #"{"urls":["http://e.org/a"]}"#, #" { "urls" : [ "http://e.org/a" , "https://f.org/b" ] , "size" : 0 }  "#,
            #"{"urls":["http://e.org/a"],"key":"k","path":"d/p","size":123456789012345678,"priority":7}"#,
            #"{"urls":["http://e.org/a"],"size":1234567890123456789}"#,
            #"{"urls":["http://e.org/a"],"size":12345678901234567890}"#,
            #"{"urls":["http://e.org/a"],"size":007}"#,
            #"{"urls":["http://e.org/a"],"size":1.0}"#,
            #"{"urls":["http://e.org/a"],"size":1e3}"#,
            #"{"urls":["http://e.org/a"],"size":-1}"#,
            #"{"urls":["http://e.org/a"],"size":"1"}"#,
            #"{"urls":["http://e.org/a"],"size":null}"#,
            #"{"urls":["http://e.org/a"],"priority":99999999999}"#,
            #"{"urls":["http://e.org/a"],"path":"a\/b"}"#,
            #"{"urls":["http://e.org/a"],"path":"../b"}"#,
            #"{"urls":["http://e.org/a"],"path":".MUSTER/b"}"#,
            #"{"urls":["http://e.org/a"],"path":"ü"}"#,
            #"{"urls":["http://e.org/a"],"key":""}"#,
            #"{"urls":["http://e.org/a"],"digests":{"crc32c":"0a0b0c0d"}}"#,
            #"{"urls":["http://e.org/a"],"digests":{}}"#,
            #"{"urls":["http://e.org/a"],"digests":{"crc32c":"x"}}"#,
            #"{"urls":["http://e.org/a"],"sise":1}"#,
            #"{"urls":[]}"#,
            #"{"urls":["http://e.org/a",]}"#,
            #"{"urls":["http://e.org/a"],}"#,
            #"{"key":"a"}"#,
            #"{"urls":"http://e.org/a"}"#,
            #"{"urls":["gopher://e.org/a"]}"#,
            #"{"urls":["http://e.org/a"}"#,
            #"{"urls":["http://e.org/a"],"metadata":{"a":1}}"#,
            #"{"urls":["http://e.org/a"]} {}"#,
            #"{"urls":["http://e.org/a"]"#,
        ])
    func fastPathReadsWhatTheDecoderReads(line: String) {
        let (short, long) = (Self.read(line), Self.decoded(line))
        switch (short, long) {
        case (.success(let task), .success(let other)): #expect(task == other)
        case (.failure, .failure): break
        default: Issue.record("\(short) is not \(long)")
        }
    }
}
