import FoundationEssentials
import MusterAPI
import MusterCore
import Testing

@testable import MusterCommandLine

@Suite("The names that a directory has given to its URLs")
struct KeptNamesTests {
    private static func url(_ number: Int) -> String { "https://e.org/download?n=\(number)" }

    /// A task of an earlier list.
    private static func task(
        _ path: String, _ number: Int, state: TaskState = .succeeded, key: String? = nil, after seconds: Int64 = 0
    ) -> TaskDocument {
        var task = Samples.finished(path, size: 3)
        (task.key, task.urls, task.state) = (key ?? path, [url(number)], state)
        task.finishedAt =
            state.isTerminal ? Timestamp(microseconds: Samples.moment.microseconds + seconds * 1_000_000) : nil
        return task
    }

    /// The three files that a first list has brought.
    private static let first = [task("download", 1), task("download (2)", 2), task("download (3)", 3)]

    private func list(_ numbers: [Int]) throws -> TaskList {
        try TaskList(manifest: nil, urls: numbers.map(Self.url))
    }

    /// The paths of a list's files, in the list's order, given the tasks of earlier lists.
    ///
    /// - Parameters:
    ///   - gone: paths of finished files that are not there any more.
    ///   - strangers: paths that other files occupy.
    private func paths(
        _ list: TaskList, after known: [TaskDocument], gone: Set<String> = [], strangers: Set<String> = [],
        isRenamed: Bool = false, keepsURLs: Bool = true
    ) throws -> [String] {
        var names = try KeptNames(of: list, keepsURLs: keepsURLs)
        for task in known where isRenamed || names.mayMatter(task.path) {
            names.add(
                task, isRenamed: isRenamed, isThere: task.state == .succeeded && !gone.contains(task.path))
        }
        var list = list
        // A task that has its own name stays there, as the session finds where the file is unchanged.
        let places = try names.places().filter { $0.value.own == nil }
        list.places = try names.settled(places) { strangers.contains($0.string) }.places
        var paths: [String] = []
        try list.visit { task, _ in paths.append(task.path.string) }
        #expect(Set(paths).count == Set(try list.items().map(\.request.urls)).count, "no two URLs have the same path")
        return paths
    }

    @Test(arguments: [
        ([1, 2, 3], ["download", "download (2)", "download (3)"]),
        ([3, 2, 1], ["download (3)", "download (2)", "download"]),
        ([2, 3], ["download (2)", "download (3)"]), ([2], ["download (2)"]), ([1, 3], ["download", "download (3)"]),
        ([3, 1, 3], ["download (3)", "download", "download (3)"]),
    ])
    func aURLKeepsItsNameWhereverItStands(numbers: [Int], expected: [String]) throws {
        #expect(try paths(try list(numbers), after: Self.first) == expected)
        let unfinished = zip(expected, numbers).map { Self.task($0, $1, state: .paused) }
        #expect(try paths(try list(numbers), after: unfinished) == expected)
    }

    @Test func aNewURLTakesNoNameOfAnotherOne() throws {
        let grown = try list([0, 1, 2, 3])
        let names = ["download", "download (2)", "download (3)"]
        #expect(try paths(grown, after: Self.first) == ["download (5)"] + names)
        #expect(try paths(grown, after: Self.first, strangers: ["download (5)"]) == ["download (6)"] + names)
        // It keeps that name.
        let own = Self.task("download (5)", 0, key: "download")
        #expect(try paths(grown, after: Self.first + [own]) == ["download (5)"] + names)
        // A number is chosen by the list, so it isn't taken from a file whose URL isn't in the list.
        #expect(try paths(try list([1, 5]), after: Self.first) == ["download", "download (4)"])
        // A name that the URL suggests is no such choice: `--if-exists` decides what happens at that path.
        #expect(try paths(try list([5]), after: Self.first) == ["download"])
    }

    @Test func fileThatIsGoneKeepsNoName() throws {
        #expect(try paths(try list([2]), after: Self.first, gone: ["download (2)"]) == ["download"])
        #expect(
            try paths(try list([3, 2]), after: Self.first, gone: ["download (2)"]) == ["download (3)", "download (2)"])
    }

    @Test func aNameBelongsToTheURLThatHadItLast() throws {
        let replaced = Self.first + [Self.task("download", 2, after: 9), Self.task("download (2)", 3, after: 9)]
        #expect(try paths(try list([1, 2]), after: replaced) == ["download (4)", "download"])
    }

    @Test func aTaskThatSaysItsPathKeepsIt() throws {
        let path = FileManager.default.temporaryDirectory.path + "/muster-manifest-\(RandomToken.make())"
        let manifest = """
            \(Self.url(2))
            {"urls": ["\(Self.url(3))"], "path": "download (2)"}
            """
        #expect(FileManager.default.createFile(atPath: path, contents: Data(manifest.utf8)))
        defer { try? FileManager.default.removeItem(atPath: path) }
        let list = try TaskList(manifest: try ManifestFile.open(path, temporaryDirectory: "/tmp"), urls: [])
        #expect(try paths(list, after: Self.first) == ["download", "download (2)"])
        let named = try TaskList(manifest: nil, urls: [Self.url(2)], name: "download")
        #expect(try paths(named, after: Self.first) == ["download"])
        let beside = Self.task("download (2)", 2, key: "download")
        #expect(try paths(named, after: [beside], isRenamed: true) == ["download (2)"])
    }

    @Test func onlyWhatHasAnotherNameThanTheListAloneGivesItIsTold() throws {
        var list = try list([0, 1, 2])
        list.places = [
            "download": try DestinationPath(validating: "download (4)"),
            "download (2)": try DestinationPath(validating: "download"),
            "download (3)": try DestinationPath(validating: "download (2)"),
        ]
        #expect(
            try list.renamings(besides: ["download (2)", "download (3)"]) == [
                "download is the name of another one; \(Self.url(0)) is stored as download (4)"
            ])
    }
}
