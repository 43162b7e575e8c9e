import MusterAPI
import MusterCore

extension DoubtfulFiles {
    /// A line that says that these files are kept, and may be web pages.
    var line: String {
        let rest = tasks - Int64(keys.count)
        let named = keys.joined(separator: ", ") + (rest > 0 ? " and \(rest) more" : "")
        let what =
            tasks == 1 ? "1 file is kept that may be a page" : "\(tasks) files are kept that may be pages"
        return TextWidth.escaped(
            "\(what) in the place of \(tasks == 1 ? "the file" : "files"), and nothing but a size or a digest would tell: \(named)"
        )
    }

    /// The doubtful files of a group that has ended; `nil` if there are none.
    static func of(_ group: GroupDocument, _ client: MusterClient) async throws -> Self? {
        guard group.tasks.succeeded > 0 else { return nil }
        return try await client.groupExplanation(of: group.name).doubtful
    }
}
