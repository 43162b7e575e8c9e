import MusterAPI
import MusterCore
import Testing

@testable import MusterCommandLine

/// Messages about files that may be web pages in the place of files.
@Suite struct DoubtfulTextTests {
    @Test func doubtfulFilesAreCountedAndNamed() {
        #expect(
            DoubtfulFiles(tasks: 1, keys: ["a.zip"]).line
                == "1 file is kept that may be a page in the place of the file, and nothing but a size or a digest would tell: a.zip"
        )
        let several = DoubtfulFiles(tasks: 4, keys: ["a.zip", "b.pdf"]).line
        #expect(several.hasPrefix("4 files are kept that may be pages in the place of files"))
        #expect(several.hasSuffix(": a.zip, b.pdf and 2 more"))
    }
}
