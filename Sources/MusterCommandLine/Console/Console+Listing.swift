import MusterAPI

extension Console {
    /// Prints a table, laid out for the terminal if there is one.
    func table(_ table: Table) throws {
        for line in table.lines(width: tableWidth) { try self.line(line) }
    }
}

extension Page {
    /// All items of a listing, page by page.
    static func all(_ read: (_ after: String?) async throws -> Page<Item>) async throws -> [Item] {
        var items: [Item] = []
        var after: String?
        repeat {
            let page = try await read(after)
            items += page.items
            after = page.next
        } while after != nil
        return items
    }
}
