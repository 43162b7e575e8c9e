import MusterAPI
import MusterCore
import SystemPackage

/// Why a command ends without success.
enum CommandFailure: Error, Sendable {
    /// The command line, the environment or the configuration file is wrong.
    case usage(String)
    /// The coordinator refused, or would refuse: a bad manifest is refused here in the same words.
    case refused(Problem)
    /// Lines of a manifest are refused; `manifest` is its name.
    case manifest(ManifestRefusals, manifest: String)
    /// No coordinator answered; the text comes from the transport, and the hint says what helps.
    case unreachable(String, hint: String?)
    /// The time that was given ran out.
    case timedOut(String)
    /// Anything else that kept the command from its work.
    case other(String)
    /// Everything has been printed already.
    case ended(ExitStatus)

    /// The failure that corresponds to an error of any type.
    init(_ error: any Error) {
        switch error {
        case let failure as CommandFailure: self = failure
        case let problem as Problem: self = .refused(problem)
        case let unreachable as Unreachable: self = .unreachable(unreachable.description, hint: nil)
        case is OutputClosed: self = .ended(.outputClosed)
        default: self = .other(String(describing: error))
        }
    }

    /// The exit code, for scripts.
    var status: ExitStatus {
        switch self {
        case .usage: .usage
        // 503: the coordinator can't serve requests while it has no database or is about to stop.
        case .refused(let problem): problem.status == 503 ? .unreachable : .refused
        case .manifest: .refused
        case .unreachable: .unreachable
        case .timedOut: .timedOut
        case .other: .failure
        case .ended(let status): status
        }
    }

    /// The problem document of the failure, if there is one.
    var problem: Problem? {
        switch self {
        case .refused(let problem): problem
        case .manifest(let refusals, _): refusals.problem
        case .usage, .unreachable, .timedOut, .other, .ended: nil
        }
    }

    /// The text for standard error; `nil` when everything has been printed.
    var message: String? {
        switch self {
        case .usage(let text), .timedOut(let text), .other(let text): "Error: \(text)"
        case .unreachable(let text, let hint):
            "Error: no coordinator can be reached: \(text)" + (hint.map { "\n  \($0)" } ?? "")
        case .refused(let problem): Self.lines(of: problem).joined(separator: "\n")
        case .manifest(let refusals, let manifest): refusals.message(manifest: manifest)
        case .ended: nil
        }
    }

    /// A problem document as people read it.
    private static func lines(of problem: Problem) -> [String] {
        // For 404 and 409 the detail names what is missing or in the way. For other problems the title says what the problem is.
        var lines =
            [404, 409].contains(problem.status)
            ? ["Refused: \(problem.detail)"] : ["Refused: \(problem.title)", "  \(problem.detail)"]
        if let line = problem.line { lines.append("  line: \(line)") }
        if let pointer = problem.pointer, !pointer.isEmpty { lines.append("  field: \(InputRefusal.field(pointer))") }
        if problem.code == .groupSealed || problem.code == .groupFinished {
            lines.append("  muster add GROUP --reopen … opens a group again, for more files")
        }
        switch problem.code {
        case .unauthorized: lines.append("  set MUSTER_TOKEN, or give --token")
        case .subscriptionExists:
            lines.append("  muster subscriptions rotate gives it another secret, muster subscriptions remove ends it")
        default: break
        }
        if let oldest = problem.oldest { lines.append("  oldest: \(oldest)") }
        lines.append("  code: \(problem.code.rawValue) (status \(problem.status))")
        return lines
    }
}

extension CommandFailure {
    /// Runs a service that listens at an address. If another process has the address already, the failure says so in words.
    static func listening(at address: ListenAddress, _ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch  where String(describing: error).firstRange(of: Errno.addressInUse.description) != nil {
            throw CommandFailure.other("\(address) is in use; give another address by --listen")
        }
    }
}
