import FoundationEssentials
import MusterTestSupport
import SystemPackage

/// A machine that dies and forgets what was not synced.
extension StormPlay {
    /// A chunk that is not whole: from its durable offset on, storage may have lost its bytes (I4).
    private struct Rest {
        let part: FilePath
        let durable: Int64
        /// nil for the end of the part.
        let last: Int64?
    }

    /// Kills coordinators and workers, and overwrites in the parts whatever no worker has reported as durable. What comes up again finds what a
    /// machine finds that has lost all that it was free to lose.
    func loseUnsynced() async throws -> End {
        let former = await fleet.coordinators
        for coordinator in former { try await fleet.kill(coordinator.process) }
        for name in StormClient.workers {
            if let worker = await fleet.worker(name) { try await fleet.kill(worker) }
        }
        // A report that has reached the database may still be stored.
        try await eventually("the end of the coordinators' connections") {
            try await database.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'muster%'"
            ).hasPrefix("0")
        }
        for rest in try await rests() { try Self.overwrite(rest) }
        return {
            for coordinator in former { _ = try await fleet.startCoordinator(port: coordinator.port) }
            for name in StormClient.workers { try await fleet.replaceWorker(name) }
        }
    }

    private func rests() async throws -> [Rest] {
        let text = try await database.execute(
            """
            SELECT i.id, c.task_id, c.version, c.durable, c.last FROM installation AS i CROSS JOIN (
                SELECT task_id, version, durable, last FROM leases WHERE kind = 'fetch'
                UNION ALL
                SELECT task_id, version, resume, last FROM ready_chunks WHERE kind = 'fetch'
            ) AS c
            """)
        let own = fleet.sink.appending(".muster")
        return try text.split(separator: "\n").map { line in
            let words = line.split(separator: "|", omittingEmptySubsequences: false)
            guard words.count == 5, let durable = Int64(words[3]) else { throw Unexpected("no chunk: \(line)") }
            let parts = own.appending(String(words[0])).appending("parts")
            let part = parts.appending("\(words[1]).\(words[2]).part")
            return Rest(part: part, durable: durable, last: Int64(words[4]))
        }
    }

    private static func overwrite(_ rest: Rest) throws {
        let file: FileDescriptor
        do {
            file = try FileDescriptor.open(rest.part, .writeOnly)
        } catch Errno.noSuchFileOrDirectory {
            // Nothing of it has come, or its file is in place already.
            return
        }
        try file.closeAfter {
            let size = try file.seek(offset: 0, from: .end)
            let end = min(rest.last ?? size, size)
            guard rest.durable < end else { return }
            try file.writeAll(toAbsoluteOffset: rest.durable, [UInt8](repeating: 0xEE, count: Int(end - rest.durable)))
        }
    }
}
