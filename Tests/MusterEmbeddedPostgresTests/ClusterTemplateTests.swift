import Glibc
import MusterEmbeddedPostgres
import MusterTestSupport
import SystemPackage
import Testing

@Suite("Templates of new clusters")
struct ClusterTemplateTests {
    /// A private directory of templates, and server programs that count how often they make a cluster.
    private final class Machine: Sendable {
        let home: TemporaryDirectory
        private let binaries: FilePath
        private let calls: FilePath

        init() async throws {
            home = try TemporaryDirectory()
            try #require(chmod(home.path.string, 0o755) == 0)
            binaries = home.path.appending("bin")
            calls = home.path.appending("calls")
            let real = try await EmbeddedPostgresTests.binaryDirectory()
            try #require(mkdir(binaries.string, 0o755) == 0)
            try #require(symlink(real.appending("postgres").string, binaries.appending("postgres").string) == 0)
            try write("", to: calls)
            try #require(chmod(calls.string, 0o666) == 0)
            try write(
                "#!/bin/sh\n[ \"$1\" = --sync-only ] || echo >>'\(calls)'\nexec '\(real)/initdb' \"$@\"\n",
                to: binaries.appending("initdb"),
                permissions: [.ownerReadWriteExecute, .groupReadExecute, .otherReadExecute])
        }

        /// How often `initdb` has made a cluster.
        var initializations: Int { get throws { try read(calls).count } }

        /// The directory of templates.
        var directory: FilePath { home.path.appending("muster") }

        var templates: [FilePath] {
            get throws {
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
        }

        /// A server that keeps its templates here: run by root in the fallback directory, by another user in the cache.
        func server(_ place: PrivateServer, content: ClusterContent? = nil, isSmall: Bool = false) -> EmbeddedPostgres {
            let environment = ["XDG_CACHE_HOME": home.path.string, "MUSTER_PG_BINDIR": binaries.string]
            return place.server(environment: environment, content: content) {
                $0.fallbackDirectory = directory
                $0.hasTemplateDatabases = !isSmall
            }
        }

        /// Starts a server in a new directory. Returns the answer to a query, which shows that the cluster is whole.
        func startOnce(_ content: ClusterContent? = nil, _ sql: String = "SELECT 'whole'") async throws -> String {
            let server = server(try PrivateServer(), content: content)
            let endpoint = try await server.start()
            #expect(endpoint.provenance == .created)
            let answer = try await query(sql, endpoint)
            await server.stop()
            return answer
        }

        /// Makes a template, and returns it.
        func makeTemplate() async throws -> FilePath {
            #expect(try await startOnce() == "whole")
            return try #require(try templates.first)
        }
    }

    @Test func theSecondClusterIsACopyWithItsContentAndNothingIsMadeForIt() async throws {
        let machine = try await Machine()
        let fills = Observed(0)
        let content = ClusterContent(digest: "a") { endpoint in
            fills.update { $0 += 1 }
            _ = try await query("CREATE TABLE t AS SELECT 7 AS n", endpoint)
        }
        #expect(try await machine.startOnce(content, "SELECT n FROM t") == "7")
        let template = try #require(try machine.templates.first)
        #expect(try await machine.startOnce(content, "SELECT n FROM t") == "7")
        #expect(try machine.templates == [template])
        #expect(try machine.initializations == 1 && fills.value == 1)
        // Another content is another template.
        let other = ClusterContent(digest: "b") { _ = try await query("CREATE TABLE u (n int)", $0) }
        #expect(try await machine.startOnce(other, "SELECT to_regclass('t') IS NULL, count(*) FROM u") == "t|0")
        #expect(try machine.templates.count == 2)
    }

    @Test func clusterWithoutTemplateDatabasesHasATemplateOfItsOwn() async throws {
        let machine = try await Machine()
        let content = ClusterContent(digest: "a") { _ = try await query("CREATE TABLE t AS SELECT 7 AS n", $0) }
        let databases = "SELECT n, (SELECT string_agg(datname, ',' ORDER BY datname) FROM pg_database) FROM t"
        let place = try PrivateServer()
        for isNew in [true, false] {
            let server = machine.server(place, content: content, isSmall: true)
            let endpoint = try await server.start()
            #expect((endpoint.provenance == .created) == isNew)
            #expect(try await query(databases, endpoint) == "7|muster")
            _ = try await query("VACUUM", endpoint)
            await server.stop()
        }
        #expect(try await machine.startOnce(content, databases) == "7|muster,template0,template1")
        #expect(try machine.templates.count == 2)
    }

    @Test func aTemplateThatIsNotWholeIsMadeAnew() async throws {
        let machine = try await Machine()
        let template = try await machine.makeTemplate()
        // As a broken disk leaves it: the server would start, and miss a table.
        let file = template.appending("data/base/1/2619")
        let size = try file.stat().size
        try #require(size > 0 && truncate(file.string, 0) == 0)
        #expect(try await machine.startOnce() == "whole")
        #expect(try machine.templates == [template])
        #expect(try file.stat().size == size)
        try #require(rename(template.appending("manifest").string, template.appending("lost").string) == 0)
        #expect(try await machine.startOnce() == "whole")
        #expect(try machine.initializations == 3)
    }

    @Test func aLinkInThePlaceOfATemplateIsNotFollowed() async throws {
        let machine = try await Machine()
        let template = try await machine.makeTemplate()
        let elsewhere = machine.home.path.appending("elsewhere")
        try #require(rename(template.string, elsewhere.string) == 0)
        try #require(symlink(elsewhere.string, template.string) == 0)
        #expect(try await machine.startOnce() == "whole")
        #expect(try template.stat(followTargetSymlink: false).type == .directory)
        #expect(try elsewhere.appending("manifest").stat().type == .regular)
        #expect(try machine.initializations == 2)
    }

    @Test(.enabled(if: PrivateServer.isRoot)) func templateOfAnotherAccountIsNotUsed() async throws {
        let machine = try await Machine()
        let template = try await machine.makeTemplate()
        try #require(chown(template.string, 12_345, 12_345) == 0)
        #expect(try await machine.startOnce() == "whole")
        #expect(try template.stat().userID.rawValue == geteuid())
        #expect(try machine.initializations == 2)
    }

    @Test func aDirectoryThatOthersWriteToHoldsNoTemplates() async throws {
        let machine = try await Machine()
        _ = try await machine.makeTemplate()
        try #require(chmod(machine.directory.string, 0o777) == 0)
        #expect(try await machine.startOnce() == "whole")
        #expect(try await machine.startOnce() == "whole")
        #expect(try machine.initializations == 3)
    }

    @Test func twoProcessesThatMakeATemplateAtOnceBothHaveACluster() async throws {
        let machine = try await Machine()
        async let one = machine.startOnce()
        async let other = machine.startOnce()
        #expect(try await [one, other] == ["whole", "whole"])
        #expect(try machine.templates.count == 1)
        let count = try machine.initializations
        #expect(try await machine.startOnce() == "whole")
        #expect(try machine.initializations == count)
    }

    @Test func contentThatCannotBeMadeDoesNotFailTheStart() async throws {
        struct Broken: Error {}
        let machine = try await Machine()
        let content = ClusterContent(digest: "broken") { _ in throw Broken() }
        #expect(try await machine.startOnce(content) == "whole")
        #expect(try machine.templates.isEmpty)
    }

    @Test func templatesOfOtherVersionsGoWhenThereAreTooMany() async throws {
        let machine = try await Machine()
        let template = try await machine.makeTemplate()
        for number in 1...5 {
            try #require(mkdir(machine.directory.appending("pg-template-9-\(number)").string, 0o755) == 0)
        }
        try #require(rename(template.string, machine.directory.appending("pg-template-9-6").string) == 0)
        #expect(try await machine.startOnce() == "whole")
        #expect(try machine.templates.count == 3 && machine.templates.contains(template))
    }
}
