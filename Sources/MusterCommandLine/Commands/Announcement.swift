/// What a long-running command says of itself: lines, or NDJSON.
struct Announcement: Sendable {
    /// Where it is said.
    let console: Console

    /// A fact; fields that don't belong to it are absent.
    private struct Document: Encodable {
        var event: String
        var url: String?
        var address: String?
        var name: String?
        var directory: String?
        var pid: Int32?
        var status: String?
    }

    /// Requests are accepted.
    func listening(_ address: ListenAddress) {
        let line =
            address.isWildcard
            ? "listening on all addresses of this machine, port \(address.port); here: \(address.url)"
            : "listening on \(address.url)"
        say(Document(event: "listening", url: address.url, address: address.description), line)
    }

    /// Where everything is kept.
    func data(_ directory: String) {
        say(Document(event: "data", directory: directory), "data in \(directory)")
    }

    /// A sink.
    func sink(_ sink: SinkArgument) {
        say(
            Document(event: "sink", name: sink.name, directory: sink.directory),
            "sink \(sink.name) in \(sink.directory)"
        )
    }

    /// A worker process runs.
    func worker(_ name: String, processID: Int32) {
        say(Document(event: "worker", name: name, pid: processID), "worker \(name) has pid \(processID)")
    }

    /// A worker process ended by itself.
    func workerEnded(_ name: String, status: String) {
        say(
            Document(event: "workerEnded", name: name, status: status),
            "worker \(name) ended: \(status); starting it again"
        )
    }

    /// Nothing is heard of a worker process that is there.
    func workerSilent(_ name: String, for duration: Duration) {
        let seconds = duration.components.seconds
        say(
            Document(event: "workerSilent", name: name),
            "nothing has been heard of the worker \(name) for \(seconds) s; if it stays so, kill its process: it is started again"
        )
    }

    /// A worker process that was silent is not.
    func workerHeard(_ name: String) {
        say(Document(event: "workerHeard", name: name), "worker \(name) is heard of again")
    }

    /// A worker process was told to leave, and has.
    func workerLeft(_ name: String) {
        say(
            Document(event: "workerLeft", name: name),
            "worker \(name) has left, as it was told; it comes back when this command is started again"
        )
    }

    /// Everything has stopped.
    func stopped() {
        say(Document(event: "stopped"), "stopped")
    }

    /// A reader that is gone is no reason to stop serving.
    private func say(_ document: Document, _ line: String) {
        if console.json {
            try? console.document(document)
        } else {
            try? console.line(TextWidth.escaped(line))
        }
    }
}
