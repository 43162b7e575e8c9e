import MusterCore
import MusterTestSupport
import Testing

@testable import MusterWorker

/// What a worker reads in a sink, where other programs write too.
@Suite struct FileNameFuzzTests {
    @Test func namesOfPartsAreThoseThatMusterWrites() throws {
        let corpus = [
            "7.1.part", "9223372036854775807.2147483647.part", "-1.0.part", "7.1.x.part", "7.1.removed", "007.1.part",
        ]
        try ByteFuzzer(corpus).run { input in
            let name = input.text
            let part = PartName(name)
            if let part {
                try input.expect(part.string.utf8.elementsEqual(name.utf8), "it is read as \(part.string)")
            }
            try input.expect(!name.utf8.contains(UInt8(ascii: "/")) || part == nil, "it is in another directory")
            let isRemoved = RemovedName.isOne(name)
            try input.expect(!isRemoved || part == nil, "it is a part and is removed")
            let other = String(name.dropLast("removed".count)) + "part"
            try input.expect(!isRemoved || PartName(other) != nil, "\(other) would be no part")
            return part != nil
        }
    }

    @Test func markIsReadOnlyAsItIsWritten() throws {
        let corpus = [
            "1b4e28ba-2fa1-11d2-883f-0016d3cca427/7/1/9/1700000000123456789/6f5902ac237024bd", "i/1/2/3/4//adopted",
            "/0/0/0/0/", "i/-9223372036854775808/-2147483648/-1/-1/",
        ]
        try ByteFuzzer(corpus).run { input in
            guard let mark = FileMark(input.text) else { return false }
            let state = try #require(mark.state)
            let text = mark.text(state)
            try input.expect(text.utf8.elementsEqual(input.text.utf8), "it is written as \(text)")
            try input.expect(!mark.isCountedOn, "nobody else counts on it yet")
            return true
        }
    }
}
