/// Status messages of a long-running command: lines, or NDJSON.
struct Announcement: Sendable {
    /// Where messages are printed.
    let console: Console

    /// A message as JSON; fields that don't apply to it are absent.
    private struct Document: Encodable {
        var event: String
        var url: String?
        var address: String?
        var name: String?
        var directory: String?
        var pid: Int32?
        var status: String?
    }

    /// Says that the coordinator accepts requests.
    func listening(_ address: ListenAddress) {
        let line =
            address.isWildcard
            ? "listening on all addresses of this machine, port \(address.port); here: \(address.url)"
            : "listening on \(address.url)"
        say(Document(event: "listening", url: address.url, address: address.description), line)
    }

    /// Says which directory holds the data.
    func data(_ directory: String) {
        say(Document(event: "data", directory: directory), "data in \(directory)")
    }

    /// Says which directory a sink has.
    func sink(_ sink: SinkArgument) {
        say(
            Document(event: "sink", name: sink.name, directory: sink.directory),
            "sink \(sink.name) in \(sink.directory)"
        )
    }

    /// Says that a worker process runs.
    func worker(_ name: String, processID: Int32) {
        say(Document(event: "worker", name: name, pid: processID), "worker \(name) has pid \(processID)")
    }

    /// Says that a worker process ended by itself, and is started again.
    func workerEnded(_ name: String, status: String) {
        say(
            Document(event: "workerEnded", name: name, status: status),
            "worker \(name) ended: \(status); starting it again"
        )
    }

    /// Says that a running worker process does not report.
    func workerSilent(_ name: String, for duration: Duration) {
        let seconds = duration.components.seconds
        say(
            Document(event: "workerSilent", name: name),
            "nothing has been heard of the worker \(name) for \(seconds) s; if it stays so, kill its process: it is started again"
        )
    }

    /// Says that a silent worker process reports again.
    func workerHeard(_ name: String) {
        say(Document(event: "workerHeard", name: name), "worker \(name) is heard of again")
    }

    /// Says that a drained worker process has left.
    func workerLeft(_ name: String) {
        say(
            Document(event: "workerLeft", name: name),
            "worker \(name) has left, as it was told; it comes back when this command is started again"
        )
    }

    /// Says that everything has stopped.
    func stopped() {
        say(Document(event: "stopped"), "stopped")
    }

    /// Prints a message. A failed write is ignored: a missing reader is no reason to stop serving.
    private func say(_ document: Document, _ line: String) {
        if console.json {
            try? console.document(document)
        } else {
            try? console.line(TextWidth.escaped(line))
        }
    }
}
