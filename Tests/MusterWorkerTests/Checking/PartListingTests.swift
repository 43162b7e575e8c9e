import MusterCore
import Testing

@testable import MusterWorker

/// How a check goes through the names of many parts (adr/0048).
@Suite struct PartListingTests {
    /// A directory with parts of the tasks 1, 2, …, and a file that is none; it counts how often it is listed.
    private final class Parts {
        var count: Int
        var lists = 0

        init(_ count: Int) {
            self.count = count
        }

        func names() throws(SystemError) -> [String] {
            lists += 1
            return ["other"] + (0..<count).map { PartName(TaskID(Int64($0 + 1)), version: 1).string }
        }
    }

    /// Goes through all pages, and returns the names.
    private static func walk(_ listing: PartListing, _ parts: Parts) throws(SystemError) -> [PartName] {
        var names: [PartName] = []
        var after = ""
        while true {
            let page = try listing.page(after: after, of: 7) { () throws(SystemError) -> [String] in try parts.names() }
            names += page.names
            guard let last = page.last else { return names }
            after = last
        }
    }

    @Test func aDirectoryIsListedOnceForManyPages() throws {
        let parts = Parts(10 * Limits.checkNames)
        let names = try Self.walk(PartListing(), parts)
        #expect(names.count == parts.count && Set(names).count == parts.count && parts.lists == 1)
        #expect(names.map(\.string) == names.map(\.string).sorted())
    }

    @Test func whatIsKeptIsBoundedAndNothingIsLeftOut() throws {
        let parts = Parts(10 * Limits.checkNames)
        let names = try Self.walk(PartListing(most: 4 * Limits.checkNames), parts)
        #expect(Set(names).count == parts.count && names.count == parts.count && parts.lists == 3)
        parts.count = 0
        #expect(try Self.walk(PartListing(), parts).isEmpty)
    }

    @Test func anotherWalkAndAnEarlierPageGetAListOfTheirOwn() throws {
        let parts = Parts(3 * Limits.checkNames)
        let listing = PartListing(most: Limits.checkNames)
        let list = { () throws(SystemError) -> [String] in try parts.names() }
        let first = try listing.page(after: "", of: 7, list)
        let last = try #require(first.last)
        let second = try listing.page(after: last, of: 7, list)
        #expect(parts.lists == 2)
        // The page is asked for once more: the answer to the report on it was lost.
        let again = try listing.page(after: last, of: 7, list)
        #expect(again == second && parts.lists == 2)
        let earlier = try listing.page(after: "", of: 7, list)
        #expect(earlier == first && parts.lists == 3)
        let other = try listing.page(after: last, of: 8, list)
        #expect(other == second && parts.lists == 4)
    }
}
