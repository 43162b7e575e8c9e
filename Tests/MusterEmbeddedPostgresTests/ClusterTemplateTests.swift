import MusterEmbeddedPostgres
import MusterTestSupport
import SystemPackage
import Testing

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

@Suite("Templates of new clusters")
struct ClusterTemplateTests {
    private let cache: TemporaryDirectory

    init() throws {
        cache = try TemporaryDirectory()
    }

    /// A server whose templates are kept where no other test looks: root's beside its fallback, others' in their cache.
    private func server(_ place: PrivateServer) -> EmbeddedPostgres {
        var environment = PrivateServer.environment
        environment["XDG_CACHE_HOME"] = cache.path.string
        return place.server(environment: environment) { $0.fallbackDirectory = cache.path.appending("muster") }
    }

    private func templates() throws -> [FilePath] {
        let directory = cache.path.appending("muster")
        guard let stream = opendir(directory.string) else { return [] }
        defer { closedir(stream) }
        var found: [FilePath] = []
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name.hasPrefix("pg-template") { found.append(directory.appending(name)) }
        }
        return found
    }

    /// One start; what it answers says that the cluster is whole.
    private func startOnce(_ place: PrivateServer) async throws {
        let server = server(place)
        let endpoint = try await server.start()
        #expect(endpoint.provenance == .created)
        #expect(try await query("CREATE TABLE t (n int); SELECT count(*) FROM t", endpoint) == "0")
        await server.stop()
    }

    @Test func theSecondClusterIsACopyOfTheFirstTemplateAndKnowsNothingOfTheFirstCluster() async throws {
        try await startOnce(PrivateServer())
        let template = try #require(try templates().first)
        // A mark that only a copy can carry over.
        let mark = template.appending("mark-of-the-template")
        try FileDescriptor.open(mark, .writeOnly, options: .create, permissions: [.ownerReadWrite, .otherRead]).close()
        let second = try PrivateServer()
        try await startOnce(second)
        #expect(try second.root.appending("data/mark-of-the-template").stat().type == .regular)
        #expect(try templates() == [template])
    }

    @Test func aTemplateThatIsNotWholeIsDoneWithout() async throws {
        try await startOnce(PrivateServer())
        let template = try #require(try templates().first)
        // Half of a cluster, as a broken disk leaves it.
        try #require(rename(template.appending("PG_VERSION").string, template.appending("PG_LOST").string) == 0)
        try await startOnce(PrivateServer())
    }
}
