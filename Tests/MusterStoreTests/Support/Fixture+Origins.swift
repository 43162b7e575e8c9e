import MusterPostgres
import MusterStore

/// States of origins. `origin` is the short name of an origin, as in `Wanted`; nil means all origins.
extension StoreFixture {
    /// Sets how many connections an operator allows; nil: as many as the coordinator's policy.
    func capOrigins(_ origin: String? = nil, at lanes: Int32?) async throws {
        try await run("UPDATE origins SET max_connections = \(lanes) WHERE \(isNamed(origin))")
    }

    /// Makes origins rest from now on, without probes; nil ends their rest.
    func restOrigins(_ origin: String? = nil, for duration: Duration?) async throws {
        try await run(
            """
            UPDATE origins SET not_before = statement_timestamp() + \(duration), try_at = NULL WHERE \(isNamed(origin))
            """)
    }

    /// Lets the ten seconds pass after which one lane probes a resting origin.
    func passProbePause() async throws {
        try await age(.refusal, .firstRefusal, .learning, .grant, by: .seconds(11))
        try await run("UPDATE origins SET try_at = statement_timestamp()")
    }

    /// Whether the origins are known to serve other requests for a file (row 22).
    func setServesAgain(_ servesAgain: Bool = true) async throws {
        try await set("origins", "serves_again", to: servesAgain)
    }

    /// Makes all origins have learned a limit just now, by a refusal with a status; nil: none is known.
    func learnLimit(_ lanes: Int32?, from status: Int32? = nil) async throws {
        try await run(
            """
            UPDATE origins SET learned = \(lanes), limited_with = \(status), limited_epoch = NULL,
                learned_at = CASE WHEN \(lanes)::integer IS NOT NULL THEN statement_timestamp() END
            """)
    }

    /// How many lanes the origin may have now, if the policy allows 16.
    func allowance(of origin: String = "a") async throws -> Int32 {
        try await value("SELECT allowed_connections(o, 16) FROM origins o WHERE \(isNamed(origin))")
    }

    private func isNamed(_ origin: String?) -> SQL {
        "coalesce(key = 'http://' || \(origin)::text || '.test:80', true)"
    }
}
