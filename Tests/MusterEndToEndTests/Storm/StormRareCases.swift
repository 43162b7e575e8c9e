import MusterTestSupport
import SystemPackage

/// Counts rare cases in the database, by triggers of the storm's own: a case that lasts for a millisecond is not seen from outside.
struct StormRareCases: Sendable {
    let database: StormDatabase
    let fleet: Fleet

    /// Lets the database count. The schema is not Muster's, which another build would replace.
    func watch() async throws {
        try await database.execute(
            """
            CREATE SCHEMA storm;
            CREATE TABLE storm.seen (what text NOT NULL);
            CREATE FUNCTION storm.note() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                INSERT INTO storm.seen VALUES (TG_ARGV[0]);
                RETURN NULL;
            END
            $$;
            CREATE TRIGGER storm_resumed AFTER INSERT ON leases FOR EACH ROW
                WHEN (NEW.kind = 'fetch' AND NEW.resume > NEW.first) EXECUTE FUNCTION storm.note('resumed');
            CREATE TRIGGER storm_split AFTER UPDATE OF last ON leases FOR EACH ROW
                WHEN (NEW.last < OLD.last) EXECUTE FUNCTION storm.note('split');
            CREATE TRIGGER storm_last AFTER UPDATE OF remaining ON groups FOR EACH ROW
                WHEN (NEW.remaining = 0 AND NEW.state = 'sealed' AND NEW.succeeded > OLD.succeeded + 1)
                EXECUTE FUNCTION storm.note('lastTwo');
            CREATE TRIGGER storm_fresh AFTER UPDATE OF state ON tasks FOR EACH ROW
                WHEN (NEW.fenced AND NEW.state = 'succeeded' AND OLD.state <> 'succeeded')
                EXECUTE FUNCTION storm.note('freshInode');
            CREATE TRIGGER storm_version AFTER UPDATE OF version ON tasks FOR EACH ROW
                WHEN (NEW.version > OLD.version) EXECUTE FUNCTION storm.note('versionChanged');
            """)
    }

    /// Tells the report what was counted.
    func tell(_ report: StormReport, links: StormLinks, staleReports: Int) async throws {
        let text = try await database.execute("SELECT what, count(*) FROM storm.seen GROUP BY what")
        var counts: [Substring: Int] = [:]
        for line in text.split(separator: "\n") {
            let words = line.split(separator: "|")
            if words.count == 2 { counts[words[0]] = Int(words[1]) }
        }
        let cases: [(name: Substring, rare: StormReport.RareCase)] = [
            ("resumed", .resumed), ("split", .split), ("lastTwo", .lastTwo), ("freshInode", .freshInode),
            ("versionChanged", .versionChanged),
        ]
        for (name, rare) in cases { report.saw(rare, times: counts[name] ?? 0) }
        report.saw(.unknownCommit, times: links.lostReplies)
        report.saw(.staleReport, times: staleReports)
    }

    /// The stale reports that each coordinator process has refused, by process id. A coordinator that does not answer within a second is left out.
    func staleReports() async throws -> [Int32: Int] {
        var counts: [Int32: Int] = [:]
        for coordinator in await fleet.coordinators where coordinator.process.exit == nil {
            let curl = try await TestProcess.start(
                "/usr/bin/env", arguments: ["curl", "--silent", "--max-time", "1", "\(coordinator.url)/metrics"])
            guard try await curl.waitForExit() == .exited(0) else { continue }
            let line = curl.standardOutput.split(separator: "\n").first { $0.hasPrefix("muster_reports_stale_total") }
            if let count = line?.split(separator: " ").last.flatMap({ Double($0) }) {
                counts[coordinator.process.processID] = Int(count)
            }
        }
        return counts
    }
}
