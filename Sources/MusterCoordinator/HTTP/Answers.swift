import FoundationEssentials
import HTTPTypes
import Hummingbird
import MusterAPI
import MusterCore
import MusterPostgres
import MusterStore
import NIOCore

/// Answers of the API: JSON documents and problems.
enum Answer {
    /// A JSON document.
    static func json(_ value: some Encodable, status: HTTPResponse.Status = .ok) throws -> Response {
        Response(
            status: status, headers: [.contentType: "application/json"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: try encoder().encode(value))))
    }

    /// An answer without a body: the request is done.
    static let empty = Response(status: .noContent)

    /// A text for machines that don't read JSON.
    static func text(_ text: String, type: String = "text/plain; charset=utf-8") -> Response {
        Response(status: .ok, headers: [.contentType: type], body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
    }

    /// A problem document (RFC 9457).
    static func problem(_ problem: Problem) -> Response {
        var headers: HTTPFields = [.contentType: "application/problem+json"]
        if problem.status == 503 { headers[.retryAfter] = "1" }
        if problem.status == 401 { headers[.wwwAuthenticate] = "Bearer realm=\"muster\"" }
        let body = (try? encoder().encode(problem)) ?? Data()
        return Response(
            status: .init(code: problem.status), headers: headers,
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: body)))
    }

    private static func encoder() -> JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .withoutEscapingSlashes
        return encoder
    }
}

extension Problem {
    /// The problem that describes an error. Internal details are not told to the caller.
    init(_ error: any Error) {
        switch error {
        case let problem as Problem: self = problem
        case let refusal as InputRefusal: self.init(refusal)
        case let error as DecodingError: self.init(InputRefusal(error))
        case let refusal as Store.Refusal: self.init(refusal)
        case let refusal as EventRefusal: self.init(refusal)
        case let error as PostgresError where error.isUnavailable:
            self.init(.databaseUnavailable, "the database can't be reached now")
        case let error as PostgresError where error.sqlState?.isOfResources == true:
            self.init(
                .databaseUnavailable,
                "the database has no room on its disk or in memory, as its log says; try again when it has")
        case let error as PostgresError where error.sqlState == .queryCanceled:
            self.init(.busy, "the database took too long for this; a later try may succeed")
        case let error as PostgresError where error.sqlState == .lockNotAvailable:
            self.init(
                .busy,
                "something that takes long has the group, such as an addition of many tasks; try again in a moment")
        case is CancellationError: self.init(.stopping, "try another coordinator")
        case is NIOTooManyBytesError: self.init(.tooLarge, "a request body may have \(Limits.requestBody) at most")
        case let error as HTTPError where error.status == .notFound: self.init(.notFound, "no such path")
        case let error as HTTPError where error.status == .methodNotAllowed:
            self.init(.methodNotAllowed, "this path does not know the method")
        case let error as HTTPError where error.status.code < 500:
            self.init(.invalidRequest, error.body ?? "the request can't be read")
        default: self.init(.internal, "the coordinator's log has the details")
        }
    }

    /// Whether the log tells of an error: the caller does not learn what happened, and somebody may have to mend it.
    static func isLogged(_ error: any Error) -> Bool {
        (error as? PostgresError)?.sqlState == .queryCanceled || Problem(error).code == .internal
    }

    private init(_ refusal: InputRefusal) {
        self.init(.invalidRequest, refusal.reason, pointer: refusal.pointer, line: refusal.line)
    }

    private init(_ refusal: Store.Refusal) {
        switch refusal {
        case .noSuchGroup(let name): self.init(.groupNotFound, "there is no group \"\(name)\"")
        case .noSuchTask(let key): self.init(.taskNotFound, "there is no task \"\(key)\" in the group")
        case .noSuchWorker(let name): self.init(.workerNotFound, "there is no live worker \"\(name)\"")
        case .otherDirectory(let sink, let worker, let isNamesake, let place):
            self.init(
                .conflict, Self.otherDirectory(sink, at: worker, isNamesake: isNamesake),
                pointer: place.map { "/sinks/\($0)" })
        case .filesElsewhere(let sink, let group, let place):
            self.init(
                .conflict,
                "the group \"\(group)\" is not finished and has files in the directory that the sink \"\(sink)\" was before. If these are gone, "
                    + "cancel it and add what is wanted anew; if they are here too, copy .muster/directory from there instead",
                pointer: place.map { "/sinks/\($0)" })
        case .noSuchSink(let name, let place):
            self.init(.notFound, "there is no sink \"\(name)\"", pointer: "/sinks/\(place)")
        case .noSuchCheck(let id): self.init(.notFound, "there is no check \(id); the last 16 are kept")
        case .checkUnderWay(let check):
            self.init(.conflict, check?.refusal ?? "another check has ended just now; try again")
        case .tooManySinks:
            self.init(.invalidRequest, "a session has at most \(Limits.sinksPerWorker) sinks", pointer: "/name")
        case .groupExists(let name): self.init(.groupExists, "there is a group \"\(name)\" already")
        case .duplicateKey(let key, let lines):
            self.init(
                .invalidRequest, Self.collision("would both have the key \"\(key)\"", lines, ["key", "path"]),
                pointer: "/key",
                line: Int(lines.line))
        case .otherURLs(let key, let url, let existing, let line):
            self.init(
                .conflict,
                "\"\(key)\" is the file of \(existing.prefix(Self.shownURL)) in this group, and \(url.prefix(Self.shownURL)) would be stored under the "
                    + "same name; give it one of its own: {\"urls\": [\"\(url.prefix(Self.shownURL))\"], \"path\": \"…\"}; or, if that "
                    + "is the same file by another URL, say so: \"key\": \"\(key)\"",
                pointer: "/key", line: Int(line))
        case .duplicatePath(let path, let lines):
            self.init(
                .invalidRequest, Self.collision("would both be stored as \"\(path)\"", lines, ["path"]),
                pointer: "/path",
                line: Int(lines.line))
        case .nestedPath(let path, let lines):
            self.init(
                .invalidRequest,
                Self.collision("would need \"\(path)\" both as a file and as a directory", lines, ["path"]),
                pointer: "/path", line: Int(lines.line))
        case .destinationTaken(let path, let line, let group):
            self.init(
                .destinationTaken, Self.taken(path.map { "\"\($0)\"" } ?? "one of these paths", by: group),
                pointer: "/path", line: line.map(Int.init))
        case .groupTooLarge:
            self.init(.invalidRequest, "the sizes of the group's files add up to more than 64 bits can count")
        case .uploadIncomplete:
            self.init(.databaseUnavailable, "the database lost tasks that were on their way in; send all of them again")
        case .groupSealed(let key, let line):
            self.init(
                .groupSealed, "the group is sealed, and the task \"\(key)\" is new to it", pointer: "/key",
                line: Int(line))
        case .groupFinished(let key, let line):
            self.init(
                .groupFinished, "the group has finished, and the task \"\(key)\" is new to it", pointer: "/key",
                line: Int(line))
        case .prerequisiteCycle(let names):
            self.init(
                .conflict, "the groups would wait for each other in a circle: \(names.joined(separator: " → "))",
                pointer: "/after")
        case .noSuchPrerequisite(let name):
            self.init(.conflict, "there is no group \"\(name)\" to wait for", pointer: "/after")
        case .prerequisitesTooLate(let name):
            self.init(.groupFinished, "the group \"\(name)\" has finished, and waits for nothing", pointer: "/after")
        case .groupInUse(let name, let other):
            self.init(
                .conflict,
                "the group \"\(other)\" waits for \"\(name)\"; remove it first, or change that: muster limit \(ShellWord(other)) --after none"
            )
        case .keyReused:
            self.init(.conflict, "the Idempotency-Key was another request's; each has one of its own")
        case .unknownTimeZone(let name, let pointer):
            self.init(.invalidRequest, "there is no time zone \"\(name)\"", pointer: pointer)
        }
    }

    /// The longest URL that is shown whole, in characters.
    private static let shownURL = 200

    /// `A and B would …; give one of them a path of its own`, with the fields that need another value.
    private static func collision(_ what: String, _ lines: Store.Collision, _ fields: [String]) -> String {
        let names = fields.map { "a \"\($0)\"" }.joined(separator: " and ")
        let values = fields.map { ", \"\($0)\": \"…\"" }.joined()
        let (first, second) = (lines.otherURL.prefix(shownURL), lines.url.prefix(shownURL))
        return "\(first) and \(second) \(what); give one of them \(names) of its own: "
            + "{\"urls\": [\"\(second)\"]\(values)}"
    }

    /// Says which live session has another directory for a sink, and what helps.
    private static func otherDirectory(_ sink: String, at worker: String, isNamesake: Bool) -> String {
        guard isNamesake else {
            return
                "the sink \"\(sink)\" is another directory here than at the worker \"\(worker)\": all workers of a sink have to reach the "
                + "same files. Mount that directory, or end that worker if this one takes its place"
        }
        return
            "the sink \"\(sink)\" is another directory here than at another process of the name \"\(worker)\": all workers of a sink have "
            + "to reach the same files. If that process has ended, this one takes its place as soon as its session has expired; if not, end "
            + "it, or mount its directory here"
    }

    /// Says which group holds a destination, and what helps.
    private static func taken(_ path: String, by group: String?) -> String {
        guard let group else { return "an unfinished task writes to \(path) already" }
        return
            "an unfinished task of the group \"\(group)\" writes to \(path) already; wait for it (muster wait \(ShellWord(group))) and add "
            + "this once more, which takes the file that is there; or cancel it, or give this one another \"path\""
    }
}
