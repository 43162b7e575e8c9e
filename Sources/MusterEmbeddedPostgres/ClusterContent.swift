/// The content of every new cluster. It is made once on a machine, and copied from then on.
public struct ClusterContent: Sendable {
    /// Identifies what `fill` makes: other content has another digest.
    public let digest: String
    /// Fills the database of a new cluster. The content is copied into any number of databases, so it must contain nothing
    /// that identifies a database.
    public let fill: @Sendable (EmbeddedPostgres.Endpoint) async throws -> Void

    /// A content with its digest.
    public init(digest: String, fill: @escaping @Sendable (EmbeddedPostgres.Endpoint) async throws -> Void) {
        self.digest = digest
        self.fill = fill
    }
}
