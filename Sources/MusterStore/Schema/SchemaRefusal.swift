/// Why this build can't use a database.
public enum SchemaRefusal: Error, Sendable, Hashable, CustomStringConvertible {
    /// The database has no schema yet.
    case empty
    /// The database lacks these tables.
    case behind(tables: [String])
    /// The database has the tables of this build and the functions of the build that is named, which is another one.
    case otherBuild(String)
    /// The database has tables that this build does not know.
    case ahead(tables: [String])
    /// The database was made with another text of these tables.
    case altered(tables: [String])
    /// Coordinators use the database, so that its schema can't be changed; the text names their connections.
    case inUse(by: [String])

    /// The problem, and what to do about it.
    public var description: String {
        switch self {
        case .empty: "the database is empty: run muster migrate, or muster serve --migrate"
        case .behind(let tables):
            "the database lacks tables of this build (\(Self.list(tables))): stop the other coordinators and run muster migrate"
        case .otherBuild(let build):
            """
            the database is of build \(build.prefix(8)), this program is build \(Schema.build.prefix(8)), and all coordinators of \
            a database run one build: stop the others and run muster migrate
            """
        case .ahead(let tables):
            "the database has tables of a newer build (\(Self.list(tables))): run that build"
        case .altered(let tables):
            """
            the database was made by an unreleased build with other tables (\(Self.list(tables))), from which nothing \
            leads to this one: use a new database
            """
        case .inUse(let users):
            """
            coordinators still use the database (\(Self.list(users))): stop all of them and try again; workers may go on \
            meanwhile
            """
        }
    }

    private static func list(_ names: [String]) -> String {
        names.count <= 5 ? names.joined(separator: ", ") : "\(names.prefix(5).joined(separator: ", ")), …"
    }
}
