import FoundationEssentials
import MusterAPI
import MusterCore
import Testing

@testable import MusterCommandLine

@Suite("The list of tasks")
struct TaskListTests {
    /// A list with a manifest of this content.
    private func list(_ manifest: String?, urls: [String] = [], identifies: Bool = true) throws -> TaskList {
        guard let manifest else { return try TaskList(manifest: nil, urls: urls) }
        let path = FileManager.default.temporaryDirectory.path + "/muster-manifest-\(RandomToken.make())"
        #expect(FileManager.default.createFile(atPath: path, contents: Data(manifest.utf8)))
        defer { try? FileManager.default.removeItem(atPath: path) }
        return try TaskList(
            manifest: try ManifestFile.open(path, temporaryDirectory: "/tmp"), urls: urls, identifies: identifies)
    }

    @Test func theManifestComesFirstSoThatItsLinesKeepTheirNumbers() throws {
        let items = try list("# remark\nhttps://e.org/a\n\nhttps://e.org/b", urls: ["https://e.org/c"]).items()
        #expect(items.map(\.line) == [2, 4, nil])
        #expect(items.map(\.request.urls) == [["https://e.org/a"], ["https://e.org/b"], ["https://e.org/c"]])
    }

    @Test(arguments: ["https://e.org/a\n", #"{"urls": ["https://e.org/a"]}"#, "# remark\nhttps://e.org/a"])
    func aByteOrderMarkIsNoPartOfTheFirstLine(manifest: String) async throws {
        let list = try list("\u{feff}" + manifest)
        #expect(try list.items().map(\.request.urls) == [["https://e.org/a"]])
        var parser = ManifestParser(form: .tasks)
        var keys: [String] = []
        for try await part in list.stream() { keys += try parser.parse(part).map(\.task.key) }
        keys += try parser.finish().map(\.task.key)
        #expect(keys == ["a"])
    }

    @Test func aSingleURLMayHaveAnotherName() throws {
        let list = try TaskList(manifest: nil, urls: ["https://e.org/api?day=1"], name: "days/1.json")
        #expect(try list.items().map(\.request.path) == ["days/1.json"])
        #expect(throws: CommandFailure.self) {
            try TaskList(manifest: nil, urls: ["https://e.org/a", "https://e.org/b"], name: "x")
        }
        for name in ["../x", "/x", ""] {
            #expect(throws: CommandFailure.self) { try TaskList(manifest: nil, urls: ["https://e.org/a"], name: name) }
        }
        // In other tools `-` means standard output.
        #expect(throws: CommandFailure.self) { try TaskList(manifest: nil, urls: ["https://e.org/a"], name: "-") }
        let dash = try TaskList(manifest: nil, urls: ["https://e.org/a"], name: "./-")
        #expect(try dash.items().map(\.request.path) == ["-"])
    }

    @Test func hostsAreThoseOfTasksWithoutCredentialsOfTheirOwn() throws {
        let urls = ["https://b.org/x", "https://b.org:8443/y", "https://u:p@c.org/z", "http://[::1]:80/v"]
        let list = try list(#"{"urls": ["https://a.org/1", "https://mirror.org/1"]}"#, urls: urls)
        #expect(list.survey.hosts == ["a.org", "mirror.org", "b.org", "[::1]"])
    }

    @Test func theStreamHasTheSameTasksAsTheItems() async throws {
        // More than one buffer of the reader.
        let manifest = (0..<5_000).map { "https://example.org/files/\($0)" }.joined(separator: "\n")
        let list = try list(manifest, urls: ["https://e.org/last"])
        var parser = ManifestParser(form: .tasks)
        var keys: [String] = []
        for try await part in list.stream() { keys += try parser.parse(part).map(\.task.key) }
        keys += try parser.finish().map(\.task.key)
        #expect(keys == (0..<5_000).map(String.init) + ["last"])
        #expect(list.survey.count == 5_001)
        #expect(!list.survey.isSmall)
    }

    @Test func aBadLineIsRefusedAsTheCoordinatorWouldRefuseIt() throws {
        do {
            _ = try list("https://e.org/a\ngopher://e.org/b\nhttps://e.org/c\n{\n").survey
            Issue.record("accepted")
        } catch let failure as CommandFailure {
            guard case .manifest(let refusals, _) = failure, let problem = failure.problem else {
                Issue.record("\(failure)")
                return
            }
            #expect(refusals.count == 2)
            #expect(problem.code == .invalidRequest)
            #expect(problem.line == 2)
            #expect(problem.pointer == "/urls/0")
            #expect(failure.status == .refused)
        }
    }

    @Test func aBadURLOnTheCommandLineIsAUsageError() {
        do {
            _ = try list(nil, urls: ["nonsense"])
            Issue.record("accepted")
        } catch {
            #expect(CommandFailure(error).status == .usage)
        }
    }

    /// No message may show the password, neither encoded nor decoded.
    @Test(arguments: [
        "https://user:hush%21@e.org/a", "https://user:hush%21@e.org/a b", "gopher://user:hush%21@e.org/a",
    ])
    func noMessageShowsThePasswordOfAURL(url: String) throws {
        for make in [{ try list(nil, urls: [url]) }, { try list("https://e.org/b\n\(url)") }] {
            do {
                _ = try make().survey
            } catch {
                let failure = CommandFailure(error)
                #expect(failure.message?.contains("hush") == false, "\(failure)")
                #expect(url.contains(" ") || url.hasPrefix("gopher"), "refused: \(failure.message ?? "")")
            }
        }
    }

    @Test func userAndPasswordOfAURLBecomeCredentialsOfItsTask() throws {
        let url = "https://me:hush%21%3A@e.org/a"
        for list in [try list(nil, urls: [url]), try list(url)] {
            let request = try #require(try list.items().first).request
            #expect(request.urls == ["https://e.org/a"])
            #expect(request.fetch?.credentials?.user == "me")
            #expect(request.fetch?.credentials?.password.form == .value("hush!:"))
            #expect(try list.survey.identity.text != self.list("https://e.org/a").survey.identity.text)
        }
        let nameOnly = try list(nil, urls: ["ftp://anonymous@e.org/a"]).items()[0].request
        #expect(nameOnly.urls == ["ftp://e.org/a"] && nameOnly.fetch?.credentials?.user == "anonymous")
    }

    @Test func aSecondURLOfTheSameNameGetsANumber() throws {
        let urls = [
            "https://e.org/s0.bin", "https://e.org/d2/s0.bin", "https://e.org/s0.bin", "https://e.org/d3/s0.bin",
        ]
        let tasks = try list(nil, urls: urls).items().map { try $0.request.validated() }
        #expect(tasks.map(\.path.string) == ["s0.bin", "s0 (2).bin", "s0.bin", "s0 (3).bin"])
        #expect(tasks.map(\.key) == tasks.map(\.path.string))
        #expect(try list(nil, urls: urls).survey.count == 4)
        #expect(
            try list(nil, urls: urls).renamings() == [
                "s0.bin is the name of another one; https://e.org/d2/s0.bin is stored as s0 (2).bin",
                "s0.bin is the name of another one; https://e.org/d3/s0.bin is stored as s0 (3).bin",
            ])
    }

    @Test func anURLOfTheCommandLineMakesRoomForTheManifest() throws {
        let items = try list("https://e.org/s0.bin", urls: ["https://e.org/d2/s0.bin"]).items()
        #expect(try items.map { try $0.request.validated().path.string } == ["s0.bin", "s0 (2).bin"])
    }

    @Test func bareURLsOfAListGetNumbersAsThoseOfTheCommandLineDo() async throws {
        let manifest = """
            # remark
            https://e.org/s0.bin
            https://e.org/d2/s0.bin
            https://e.org/other/s0%20(2).bin
            {"urls": ["https://e.org/named"], "path": "t.bin"}
            https://e.org/s0.bin
            https://e.org/t.bin
            """
        let list = try list(manifest, urls: ["https://e.org/d3/s0.bin"])
        let paths = ["s0.bin", "s0 (3).bin", "s0 (2).bin", "t.bin", "s0.bin", "t (2).bin", "s0 (4).bin"]
        #expect(try list.items().map { try $0.request.validated().path.string } == paths)
        var visited: [String] = []
        try list.visit { task, _ in visited.append(task.path.string) }
        #expect(visited == paths)
        var parser = ManifestParser(form: .tasks)
        var streamed: [String] = []
        for try await part in list.stream() { streamed += try parser.parse(part).map(\.task.key) }
        #expect(streamed == paths)
        #expect(
            try list.renamings() == [
                "s0.bin is the name of another one; https://e.org/d2/s0.bin is stored as s0 (3).bin",
                "t.bin is the name of another one; https://e.org/t.bin is stored as t (2).bin",
                "s0.bin is the name of another one; https://e.org/d3/s0.bin is stored as s0 (4).bin",
            ])
        #expect(list.survey.count == 7)
    }

    @Test func theNamesOfAListBelongToItsIdentity() throws {
        let list = try list("https://e.org/a\nhttps://e.org/b/a")
        let named = try self.list(
            "https://e.org/a\n" + #"{"urls": ["https://e.org/b/a"], "path": "a (2)"}"#)
        #expect(list.survey.identity.text == named.survey.identity.text)
    }

    @Test func tasksInJSONSayTheirPathsThemselves() throws {
        let json = #"{"urls": ["https://e.org/a"]}"# + "\n" + #"{"urls": ["https://e.org/b/a"]}"#
        let list = try list(json + "\nhttps://e.org/c")
        #expect(try list.items().map { try $0.request.validated().path.string } == ["a", "a", "c"])
        #expect(try list.renamings().isEmpty)
    }

    @Test func aListOfOneNameIsToldInAFewLines() throws {
        let list = try list((0..<100).map { "https://e.org/\($0)/a" }.joined(separator: "\n"))
        #expect(try list.renamings().count == SharedNames.told + 1)
        #expect(try list.renamings().last == "… and 79 more have numbered names")
    }

    @Test func aDigestIsForExactlyOneURL() throws {
        let digest = try DigestArgument("md5:" + String(repeating: "0", count: 32))
        #expect(throws: CommandFailure.self) {
            try TaskList(manifest: nil, urls: ["https://e.org/a", "https://e.org/b"], digest: digest)
        }
        let one = try TaskList(manifest: nil, urls: ["https://e.org/a"], digest: digest)
        #expect(try one.items()[0].request.digests == digest.document)
    }

    @Test func aMissingManifestIsAUsageError() {
        do {
            _ = try ManifestFile.open("/nonexistent/manifest", temporaryDirectory: "/tmp")
            Issue.record("opened")
        } catch {
            #expect(error.status == .usage)
        }
        #expect(throws: CommandFailure.self) { try ManifestFile.open("/", temporaryDirectory: "/tmp") }
    }

    @Test(
        arguments: [
            ([0xFF, 0xFE], false, "UTF-16"), ([0xFE, 0xFF], true, "UTF-16"), ([], false, "UTF-16LE"),
            ([], true, "UTF-16BE"),
        ] as [([UInt8], Bool, String)]
    )
    func aManifestInUTF16IsRefusedOnceWithTheConversion(mark: [UInt8], isBigEndian: Bool, name: String) {
        let path = FileManager.default.temporaryDirectory.path + "/muster-manifest-\(RandomToken.make())"
        let text = "https://e.org/a\nhttps://e.org/b\n".utf16.flatMap { unit -> [UInt8] in
            let bytes = [UInt8(unit & 0xFF), UInt8(unit >> 8)]
            return isBigEndian ? bytes.reversed() : bytes
        }
        #expect(FileManager.default.createFile(atPath: path, contents: Data(mark + text)))
        defer { try? FileManager.default.removeItem(atPath: path) }
        let failure = #expect(throws: CommandFailure.self) {
            _ = try ManifestFile.open(path, temporaryDirectory: "/tmp")
        }
        #expect(failure?.status == .usage)
        #expect(failure?.message?.hasSuffix("convert it first: iconv -f \(name) -t UTF-8 \(ShellWord(path))") == true)
    }

    @Test func aNameThatIsNoneBelowTheDirectorySaysWhatToType() {
        let failure = #expect(throws: CommandFailure.self) {
            _ = try TaskList(manifest: nil, urls: ["https://e.org/a"], name: "/tmp/x")
        }
        #expect(failure?.status == .usage)
        #expect(failure?.message?.hasSuffix("relative to the directory of -d: -d DIR -o NAME") == true)
    }

    @Test(arguments: [(true, "the directory of -d"), (false, "the directory of its sink")])
    func anAbsolutePathIsRefusedInTheWordsOfTheCommand(isGet: Bool, place: String) {
        let failure = #expect(throws: CommandFailure.self) {
            _ = try list(#"{"urls": ["https://e.org/a"], "path": "/tmp/x"}"#, identifies: isGet)
        }
        #expect(failure?.message?.hasSuffix(#"field "path": the path must be relative to \#(place)"#) == true)
    }

    @Test func theIdentityIsThatOfASetOfTasks() throws {
        let ab = try list("https://e.org/a\nhttps://e.org/b").survey.identity.text
        #expect(try list(nil, urls: ["https://e.org/b", "https://e.org/a"]).survey.identity.text == ab)
        #expect(try list("https://e.org/a").survey.identity.text != ab)
        #expect(try list("https://e.org/a\nhttps://e.org/b?v=2").survey.identity.text != ab)
        #expect(try list("https://e.org/a\nhttps://e.org/a\nhttps://e.org/b").survey.identity.text != ab)
        #expect(NameRule.accepts("get-\(ab)"))
        #expect(ab.count == 16)
    }

    @Test func theIdentityCoversEverythingThatIsWanted() throws {
        let plain = #"{"urls":["https://e.org/a"]}"#
        let variants = [
            #"{"urls":["https://e.org/a"],"path":"b"}"#, #"{"urls":["https://e.org/a"],"key":"k"}"#,
            #"{"urls":["https://e.org/a"],"size":1}"#, #"{"urls":["https://e.org/a","https://f.org/a"]}"#,
            #"{"urls":["https://e.org/a"],"headers":{"A":"b"}}"#,
        ]
        let identities = try ([plain] + variants).map { try list($0).survey.identity.text }
        #expect(Set(identities).count == identities.count)
    }

    @Test func aProblemOfATaskIsLocatedInTheManifest() throws {
        let items = try list("# remark\nhttps://e.org/a\nhttps://e.org/b", urls: ["https://e.org/c"]).items()
        let problem = Problem(.destinationTaken, "taken", pointer: "/tasks/1/path")
        let located = Submission.located(problem, prefix: "/tasks/", items)
        #expect(located.line == 3)
        #expect(located.pointer == "/path")
        // A coordinator may count the tasks of a document as lines.
        let counted = Problem(.invalidRequest, "twice", pointer: "/key", line: 2)
        #expect(Submission.located(counted, prefix: "/tasks/", items).line == 3)
        // A URL of the command line has no line, and a pointer outside of `/tasks/` belongs to no task.
        let third = Problem(.destinationTaken, "taken", pointer: "/tasks/2/path")
        #expect(Submission.located(third, prefix: "/tasks/", items) == third)
        let other = Problem(.invalidRequest, "bad", pointer: "/name")
        #expect(Submission.located(other, prefix: "/tasks/", items) == other)
    }
}
