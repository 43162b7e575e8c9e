/// What every new cluster is filled with, so that this is done once on a machine, and copied from then on.
public struct ClusterContent: Sendable {
    /// Names what `fill` makes: what is filled by another text is another content.
    public let digest: String
    /// Fills the database of a new cluster with what may stand in any number of databases: nothing that one is told from another by.
    public let fill: @Sendable (EmbeddedPostgres.Endpoint) async throws -> Void

    /// A content.
    public init(digest: String, fill: @escaping @Sendable (EmbeddedPostgres.Endpoint) async throws -> Void) {
        self.digest = digest
        self.fill = fill
    }
}
