import Crypto

/// The schema of this build: tables by number, and every function of the database once (`adr/0016`).
///
/// A file in `Tables` or `Verbs` is registered here and in `Package.swift`; a test compares both lists with the folders.
enum Schema {
    /// A script of the schema.
    struct Script: Sendable {
        /// The name of its file, without the extension.
        let name: String
        /// Its SQL.
        let text: String

        init(_ name: String, _ bytes: [UInt8]) {
            self.name = name
            text = String(decoding: bytes, as: UTF8.self)
        }

        /// A digest of its text, in hexadecimal.
        var digest: String { Schema.digest([text]) }
    }

    /// Applied once each, in this order, and never edited once a version is tagged.
    static let tables = [
        Script("0001_groups", PackageResources._001_groups_sql),
        Script("0002_leasing", PackageResources._002_leasing_sql),
        Script("0003_events", PackageResources._003_events_sql),
        Script("0004_requests", PackageResources._004_requests_sql),
        Script("0005_checks", PackageResources._005_checks_sql),
    ]

    /// Installed as a whole, in any order.
    static let verbs = [
        Script("additions", PackageResources.additions_sql),
        Script("answers", PackageResources.answers_sql),
        Script("budgets", PackageResources.budgets_sql),
        Script("chains", PackageResources.chains_sql),
        Script("checks", PackageResources.checks_sql),
        Script("chunks", PackageResources.chunks_sql),
        Script("claim", PackageResources.claim_sql),
        Script("clock", PackageResources.clock_sql),
        Script("completion", PackageResources.completion_sql),
        Script("conditions", PackageResources.conditions_sql),
        Script("cuts", PackageResources.cuts_sql),
        Script("deadlines", PackageResources.deadlines_sql),
        Script("deliveries", PackageResources.deliveries_sql),
        Script("events", PackageResources.events_sql),
        Script("failures", PackageResources.failures_sql),
        Script("findings", PackageResources.findings_sql),
        Script("grants", PackageResources.grants_sql),
        Script("incarnation", PackageResources.incarnation_sql),
        Script("ladder", PackageResources.ladder_sql),
        Script("lanes", PackageResources.lanes_sql),
        Script("limits", PackageResources.limits_sql),
        Script("mirrors", PackageResources.mirrors_sql),
        Script("once", PackageResources.once_sql),
        Script("origins", PackageResources.origins_sql),
        Script("outages", PackageResources.outages_sql),
        Script("paths", PackageResources.paths_sql),
        Script("preemption", PackageResources.preemption_sql),
        Script("purges", PackageResources.purges_sql),
        Script("questions", PackageResources.questions_sql),
        Script("repairs", PackageResources.repairs_sql),
        Script("reports", PackageResources.reports_sql),
        Script("requests", PackageResources.requests_sql),
        Script("returns", PackageResources.returns_sql),
        Script("reuse", PackageResources.reuse_sql),
        Script("sessions", PackageResources.sessions_sql),
        Script("shares", PackageResources.shares_sql),
        Script("sharing", PackageResources.sharing_sql),
        Script("slices", PackageResources.slices_sql),
        Script("stragglers", PackageResources.stragglers_sql),
        Script("verbs", PackageResources.verbs_sql),
        Script("wholeness", PackageResources.wholeness_sql),
        Script("windows", PackageResources.windows_sql),
    ]

    /// Sets how some of the verbs are planned; run after them.
    static let plans = Script("plans", PackageResources.plans_sql)

    /// Names this build of the schema: a digest over all scripts, in hexadecimal.
    static let build = digest((tables + verbs + [plans]).map { "\($0.name)\n\($0.text)" })

    private static func digest(_ texts: [String]) -> String {
        var hash = SHA256()
        for text in texts {
            hash.update(data: Array("\(text.utf8.count)\n\(text)".utf8))
        }
        return hash.finalize().prefix(8).map { byte in
            let digits = String(byte, radix: 16)
            return digits.utf8.count == 1 ? "0\(digits)" : digits
        }.joined()
    }
}
