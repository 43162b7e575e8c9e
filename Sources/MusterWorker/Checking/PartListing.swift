import MusterCore
import Synchronization

/// The names of the parts in a sink, page by page in their order. The directory is listed once for many pages: a list for each page would take time
/// that grows with the square of the number of names (adr/0048).
///
/// A name that was deleted since the list does no harm: what is told of names is looked at once more.
final class PartListing: Sendable {
    /// A page of names.
    struct Page: Hashable {
        /// The names.
        var names: [PartName]
        /// The last name; `nil` if no name comes after it.
        var last: String?
    }

    /// What is kept of a list.
    private struct Kept {
        /// The fencing token of the walk, which belongs to one sink and one session.
        let walk: Int64
        /// The name after which the list begins.
        let after: String
        /// The first names after that, in their order.
        let names: [String]
        /// Whether no name comes after them.
        let isWhole: Bool
    }

    private let kept = Mutex<Kept?>(nil)
    private let most: Int

    /// An empty list.
    ///
    /// - Parameter most: how many names are kept; after these the directory is listed again.
    init(most: Int = Limits.checkNamesKept) {
        self.most = most
    }

    /// The next names of a walk, at most `Limits.checkNames`.
    ///
    /// - Parameters:
    ///   - after: the name after which the page begins; empty for the first page, for which the directory is always listed.
    ///   - list: lists all names of the directory, in no order.
    func page(
        after: String, of walk: Int64, _ list: () throws(SystemError) -> [String]
    ) throws(SystemError) -> Page {
        if !after.isEmpty, let known = kept.withLock({ $0 }), known.walk == walk, known.after <= after,
            let page = Self.page(after: after, in: known)
        {
            return page
        }
        let all = try list().filter { $0 > after && PartName($0) != nil }.sorted()
        let fresh = Kept(walk: walk, after: after, names: Array(all.prefix(most)), isWhole: all.count <= most)
        kept.withLock { $0 = fresh }
        return Self.page(after: after, in: fresh) ?? Page(names: [], last: nil)
    }

    /// The page of a list; `nil` if all of its names were given, and more come after them.
    private static func page(after: String, in known: Kept) -> Page? {
        // The first name after it, by bisection.
        var (first, end) = (0, known.names.count)
        while first < end {
            let middle = (first + end) / 2
            if known.names[middle] > after { end = middle } else { first = middle + 1 }
        }
        let names = known.names[first...].prefix(Limits.checkNames)
        if names.isEmpty, !known.isWhole { return nil }
        let isLast = known.isWhole && names.endIndex == known.names.count
        return Page(names: names.compactMap { PartName($0) }, last: isLast ? nil : names.last)
    }
}
