import ArgumentParser
import FoundationEssentials
import MusterAPI
import MusterCore

/// `muster workers`: lists live workers.
struct WorkersCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "workers",
        abstract: "Lists the workers that are alive.",
        usage: "muster workers",
        discussion: """
            LEASES is how many leases a worker holds, those that wait for one of its SLOTS among them, TO COME what is left to fetch \
            under them, a + meaning that not every length is known, and ETA how long that takes. A worker that is draining takes no more, \
            gives back what it has not finished within seconds, and is not in the list any more once it has left. Of a worker that is silent \
            nothing has been heard for longer than there should be. What is wrong with a sink, and a name that \
            several workers have, stands below the table.

            Example:
              muster workers --json | jq -r 'select(.state == "ready") | .name'
            """
    )

    @OptionGroup var client: ClientOptions
    @OptionGroup var global: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        let workers = try await context.withClient { client in
            try await Page.all { try await client.workers(after: $0, limit: Limits.pageSize) }
        }
        if context.console.json {
            for worker in workers { try context.console.document(worker) }
        } else if workers.isEmpty {
            try context.console.line("there are no workers: muster work starts one, and muster up those that left it")
        } else {
            try context.console.table(Self.table(workers, clock: .ofThisMachine))
            for line in Self.troubles(workers) { try context.console.line(line) }
        }
    }

    /// A line for each name that several workers have, and for each sink in trouble, with what its worker reports.
    static func troubles(_ workers: [WorkerDocument]) -> [String] {
        let shared = Set(workers.filter { $0.sharesName == true }.map(\.name)).sorted().map {
            "several live workers are called \($0): start each of them with a --name of its own, or end all but one"
        }
        return shared + sinksInTrouble(workers)
    }

    /// A line for each sink in trouble, with what its worker reports.
    ///
    /// - Parameter name: the sink that is asked for; `nil` for all of them.
    static func sinksInTrouble(_ workers: [WorkerDocument], named name: String? = nil) -> [String] {
        workers.flatMap { worker in
            worker.sinks.filter { $0.parked != nil && (name == nil || $0.name == name) }.map {
                "the sink \"\($0.name)\" is in trouble at \(worker.name)\($0.detail.map { ": \($0)" } ?? "")"
            }
        }
    }

    /// The table of workers.
    static func table(_ workers: [WorkerDocument], clock: WallClock) -> Table {
        var table = Table([
            .name("WORKER"), .text("STATE"), .number("LEASES"), .number("SLOTS"), .number("SPEED"),
            .number("AT MOST", isOptional: true),
            .number("TO COME", isOptional: true), .number("ETA", isOptional: true), .sentence("SINKS"),
            .text("VERSION"),
            .text("LAST SEEN"),
        ])
        for worker in workers {
            let sinks = worker.sinks.map {
                switch $0.parked {
                case nil: $0.name
                case .storageFull: "\($0.name) (full)"
                default: "\($0.name) (in trouble)"
                }
            }
            table.add([
                worker.name, worker.silentSince == nil ? worker.state : "silent", "\(worker.leases)", "\(worker.slots)",
                worker.leases > 0 ? ProgressSnapshot.rate(worker.bytesPerSecond) : "-",
                worker.bytesPerSecondLimit.map(ProgressSnapshot.rate) ?? "-", ProgressSnapshot.toCome(worker.bytes),
                ProgressSnapshot.time(worker.etaSeconds), sinks.joined(separator: ", "), worker.version,
                clock.distance(worker.lastSeenAt),
            ])
        }
        return table
    }
}

extension Timestamp {
    /// Now, by this machine's clock.
    static var ofThisMachine: Timestamp { Timestamp(microseconds: Int64(Date.now.timeIntervalSince1970 * 1_000_000)) }
}

/// `muster drain`: lets a worker finish and leave.
struct DrainCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "drain",
        abstract: "Tells a worker to finish or give back what it has, and to leave.",
        usage: "muster drain <worker>",
        discussion: """
            A worker of muster up stays away until muster up is started again.

            Example:
              muster drain rack3-host7
            """
    )

    @Argument(help: "The worker's name.")
    var worker: String

    @OptionGroup var client: ClientOptions
    @OptionGroup var global: GlobalOptions

    /// The result as JSON.
    private struct Document: Encodable {
        var worker: String
        var draining = true
    }

    func perform(_ context: CommandContext) async throws {
        try CommandContext.checkName(worker, what: "worker")
        let wasDraining = try await context.withClient { client in
            let sessions = try await Page.all { try await client.workers(after: $0, limit: Limits.pageSize) }
            try await client.drain(worker: worker)
            let states = sessions.filter { $0.name == worker }.map(\.state)
            return !states.isEmpty && states.allSatisfy { $0 == "draining" }
        }
        if context.console.json {
            try context.console.document(Document(worker: worker))
        } else {
            try context.console.line(
                wasDraining
                    ? "nothing to drain: \(worker) is draining already"
                    : "\(worker) is draining: it takes no more work, and leaves the list of muster workers within seconds"
            )
        }
    }
}
