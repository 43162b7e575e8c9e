import MusterAPI
import ServiceLifecycle
import Testing

@testable import MusterCoordinator

@Suite("What each token may do")
struct GuardTests {
    private let check = TokenCheck(admin: "an-admin-token-0123", worker: "a-worker-token-0123")

    private func problem(_ authorization: String?, _ access: Access, _ check: TokenCheck) -> Problem.Code? {
        do {
            try check.check(authorization, for: access)
            return nil
        } catch {
            return error.code
        }
    }

    @Test func theAdminTokenOpensEverything() {
        #expect(problem("Bearer an-admin-token-0123", .admin, check) == nil)
        #expect(problem("Bearer an-admin-token-0123", .worker, check) == nil)
    }

    @Test(arguments: ["bearer ", "BEARER ", "bEaReR  "])
    func schemeHasNoCaseAndTheTokenHas(_ scheme: String) {
        #expect(problem(scheme + "an-admin-token-0123", .admin, check) == nil)
        #expect(problem(scheme + "AN-ADMIN-TOKEN-0123", .admin, check) == .unauthorized)
    }

    @Test func theWorkerTokenOpensWhatWorkersDoAndNoMore() {
        #expect(problem("Bearer a-worker-token-0123", .worker, check) == nil)
        #expect(problem("Bearer a-worker-token-0123", .admin, check) == .forbidden)
    }

    @Test(arguments: [nil, "", "Bearer ", "Bearer wrong", "Basic an-admin-token-0123", "an-admin-token-0123"])
    func anythingElseIsUnauthorized(_ authorization: String?) {
        #expect(problem(authorization, .admin, check) == .unauthorized)
        #expect(problem(authorization, .worker, check) == .unauthorized)
    }

    @Test func withoutTokensEverythingIsOpenSinceOnlyLoopbackListens() {
        #expect(problem(nil, .admin, TokenCheck(admin: nil, worker: nil)) == nil)
    }

    @Test(arguments: ["0.0.0.0", "::", "192.0.2.7", "example.org", "127.example.org"])
    func listeningBeyondLoopbackWithoutTokensIsRefusedAndSaysWhy(_ host: String) {
        var configuration = CoordinatorConfiguration(database: "")
        configuration.listenHost = host
        do {
            try configuration.check()
            Issue.record("it was accepted")
        } catch {
            #expect(error.description.contains("MUSTER_WORKER_TOKEN"))
        }
        configuration.adminToken = "an-admin-token-0123"
        #expect(throws: ConfigurationRefusal.self) { try configuration.check() }
        configuration.workerToken = "a-worker-token-0123"
        #expect(throws: Never.self) { try configuration.check() }
    }

    @Test func aShortOrDoubledTokenIsRefused() {
        var configuration = CoordinatorConfiguration(database: "")
        configuration.adminToken = "short"
        #expect(throws: ConfigurationRefusal.self) { try configuration.check() }
        configuration.adminToken = "an-admin-token-0123"
        configuration.workerToken = "an-admin-token-0123"
        #expect(throws: ConfigurationRefusal.self) { try configuration.check() }
    }

    @Test func aPrintedConfigurationShowsNoSecret() {
        var configuration = CoordinatorConfiguration(database: "postgresql://u:database-secret@h/d")
        configuration.adminToken = "an-admin-token-0123"
        var text = ""
        dump(configuration, to: &text)
        for shown in ["\(configuration)", String(reflecting: configuration), text, NamedService(Silent()).description] {
            #expect(!shown.contains("secret") && !shown.contains("0123"))
        }
    }
}

private struct Silent: Service {
    let token = "a-secret-0123"
    func run() async throws {}
}
