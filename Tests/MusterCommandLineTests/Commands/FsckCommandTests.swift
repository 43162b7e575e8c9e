import FoundationEssentials
import MusterAPI
import MusterCore
import Synchronization
import SystemPackage
import Testing
import UnixSignals

@testable import MusterCommandLine

/// How `muster fsck` ends a check that it has begun (adr/0048).
@Suite struct FsckCommandTests {
    /// Stops the check of a command; returns what was asked of the coordinator, which answers POST with this.
    private func stop(_ known: Int64?, beginning answer: Result<Int64, Problem>) async throws -> [String] {
        let asked = Mutex<[String]>([])
        let client = MusterClient(servers: ["http://script"], token: nil) { request in
            if request.url.hasSuffix("/healthz") { return APIResponse(status: 200, body: []) }
            asked.withLock { $0.append("\(request.method) \(request.url.dropFirst("http://script".count))") }
            guard request.method == "POST" else { return APIResponse(status: 204, body: []) }
            switch answer {
            case .success(let id):
                let check = CheckDocument(
                    id: id, deep: false, repair: false, state: "running", begunAt: Timestamp(microseconds: 0))
                return APIResponse(status: 201, body: Array(try JSONEncoder().encode(check)))
            case .failure(let problem):
                return APIResponse(status: problem.status, body: Array(try JSONEncoder().encode(problem)))
            }
        }
        try await Self.said { console in
            await FsckCommand.giveUp(
                known, of: CheckRequest(), client, console, within: .seconds(3_600), hurried: Eventual())
        }
        return asked.withLock(\.self)
    }

    /// Runs a body with a console, and returns what it prints.
    @discardableResult
    private static func said(_ body: (Console) async throws -> Void) async throws -> String {
        let (reader, writer) = try FileDescriptor.pipe()
        defer { try? reader.close() }
        do {
            defer { try? writer.close() }
            try await body(Console(json: false, output: writer, errorOutput: writer))
        }
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = try bytes.withUnsafeMutableBytes { try reader.read(into: $0) }
        return String(decoding: bytes[..<count], as: UTF8.self)
    }

    /// A coordinator that takes requests and never answers.
    private static let silent = MusterClient(servers: ["http://script"], token: nil) { _ in
        try await Eventual<APIResponse>().value()
    }

    private static let mayGoOn = "the check may go on: muster fsck --stop stops it, once a coordinator answers\n"

    /// Without the limit, the client waits for half a minute and more.
    @Test(.timeLimit(.minutes(1)), arguments: [nil, 7] as [Int64?])
    func aSilentCoordinatorDoesNotKeepTheCommand(known: Int64?) async throws {
        let said = try await Self.said { console in
            for _ in 0..<10 {
                await FsckCommand.giveUp(
                    known, of: CheckRequest(), Self.silent, console, within: .milliseconds(1), hurried: Eventual())
            }
        }
        #expect(said == String(repeating: Self.mayGoOn, count: 10))
    }

    @Test(.timeLimit(.minutes(1))) func aSecondSignalEndsTheCommandAtOnce() async throws {
        let isClosing = Eventual<Bool>()
        let said = try await Self.said { console in
            let failure = await #expect(throws: CommandFailure.self) {
                try await Interruption.watched(
                    { try await Eventual<Bool>().value() },
                    by: { told in
                        await told(.end(.sigint))
                        guard (try? await isClosing.value()) != nil else { return }
                        await told(.hurry(.sigint))
                    },
                    closing: { hurried in
                        isClosing.fulfil(true)
                        await FsckCommand.giveUp(
                            7, of: CheckRequest(), Self.silent, console, within: .seconds(3_600), hurried: hurried)
                    })
            }
            #expect(failure?.status == .interrupted)
        }
        #expect(said == Self.mayGoOn)
    }

    /// The check that is under way is stopped, and no other one is.
    @Test func theCheckThatIsUnderWayIsStoppedWhicheverCommandBeganIt() async throws {
        let asked = Mutex<[String]>([])
        let client = MusterClient(servers: ["http://script"], token: nil) { request in
            if request.url.hasSuffix("/healthz") { return APIResponse(status: 200, body: []) }
            let isStopped = asked.withLock { asked in
                asked.append("\(request.method) \(request.url.dropFirst("http://script".count))")
                return asked.contains { $0.hasPrefix("DELETE") }
            }
            let checks = [isStopped ? "stopped" : "running", "finished"].map { state -> CheckDocument in
                var check = CheckDocument(
                    id: state == "finished" ? 3 : 4, deep: true, repair: false, state: state,
                    begunAt: Timestamp(microseconds: 0))
                check.sinks = [
                    .init(
                        name: "other", phase: "files", worker: nil, workersReaching: 0, files: 0, parts: 0, bytes: 0,
                        unproven: 0)
                ]
                return check
            }
            if request.method == "DELETE" { return APIResponse(status: 204, body: []) }
            let isList = request.url.hasSuffix("/checks")
            let body =
                isList ? try JSONEncoder().encode(Page(items: checks, next: nil)) : try JSONEncoder().encode(checks[0])
            return APIResponse(status: 200, body: Array(body))
        }
        let first = try await Self.said { try await FsckCommand.stopRunning(client, $0) }
        #expect(first.hasPrefix("check 4 (--deep --sink other), begun "), "\(first)")
        #expect(first.hasSuffix(" ago, is stopped\n"), "\(first)")
        #expect(try await Self.said { try await FsckCommand.stopRunning(client, $0) } == "no check is under way\n")
        #expect(
            asked.withLock(\.self) == [
                "GET /v1/checks", "DELETE /v1/checks/4", "GET /v1/checks/4", "GET /v1/checks",
            ])
    }

    @Test func whatWorkersReportOfASinkThatIsWaitedForIsTold() {
        let now = Timestamp(microseconds: 0)
        var worker = WorkerDocument(
            name: "rack3", session: SessionID(1), version: "1", startedAt: now, lastSeenAt: now)
        worker.sinks = [
            SinkStatus(name: "default", parked: .storage, detail: "/srv is not mounted"),
            SinkStatus(name: "other", parked: .storageFull), SinkStatus(name: "third"),
        ]
        let waiting = "no live worker reaches the sink default: the check waits for one"
        #expect(FsckCommand.waiting(for: "default", []) == [waiting])
        #expect(
            FsckCommand.waiting(for: "default", [worker]) == [
                waiting, "the sink \"default\" is in trouble at rack3: /srv is not mounted",
            ])
    }

    @Test func optionsAreThoseThatAskForTheSameCheck() {
        #expect(CheckRequest(deep: false, repair: false, sinks: []).options.isEmpty)
        #expect(
            CheckRequest(deep: true, repair: true, sinks: ["a", "b"]).options == "--deep --repair --sink a --sink b")
        let many = CheckRequest(sinks: (1...10).map { "s\($0)" }).options
        #expect(many.hasSuffix("--sink s8 and 2 sinks more"), "\(many)")
    }

    @Test func aCheckIsStoppedByItsNumber() async throws {
        #expect(try await stop(7, beginning: .success(8)) == ["DELETE /v1/checks/7"])
    }

    /// Ctrl-C comes before the answer that has the number.
    @Test func aCheckWhoseNumberIsNotKnownYetIsJoinedAndStopped() async throws {
        #expect(try await stop(nil, beginning: .success(8)) == ["POST /v1/checks", "DELETE /v1/checks/8"])
    }

    @Test func anotherCheckIsNotStopped() async throws {
        let refusal = Problem(.conflict, "check 3 is under way")
        #expect(try await stop(nil, beginning: .failure(refusal)) == ["POST /v1/checks"])
    }
}
