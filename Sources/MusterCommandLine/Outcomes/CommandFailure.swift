import MusterAPI
import MusterCore
import SystemPackage

/// Why a command ends without success.
enum CommandFailure: Error, Sendable {
    /// The command line, the environment or the configuration file is wrong.
    case usage(String)
    /// The coordinator refused, or would have: a bad manifest is found out here in the very same words.
    case refused(Problem)
    /// The same where lines of a manifest are wrong; `manifest` is its name.
    case manifest(ManifestRefusals, manifest: String)
    /// No coordinator answered; the text is the transport's, the hint what helps.
    case unreachable(String, hint: String?)
    /// The time that was given ran out.
    case timedOut(String)
    /// Anything else that kept the command from its work.
    case other(String)
    /// All that is to be said has been printed already.
    case ended(ExitStatus)

    /// The failure that an error of any origin amounts to.
    init(_ error: any Error) {
        switch error {
        case let failure as CommandFailure: self = failure
        case let problem as Problem: self = .refused(problem)
        case let unreachable as Unreachable: self = .unreachable(unreachable.description, hint: nil)
        case is OutputClosed: self = .ended(.outputClosed)
        default: self = .other(String(describing: error))
        }
    }

    /// The exit code that tells it to scripts.
    var status: ExitStatus {
        switch self {
        case .usage: .usage
        // Nobody is there to answer as long as the coordinator has no database or is about to stop.
        case .refused(let problem): problem.status == 503 ? .unreachable : .refused
        case .manifest: .refused
        case .unreachable: .unreachable
        case .timedOut: .timedOut
        case .other: .failure
        case .ended(let status): status
        }
    }

    /// The document that says it, if there is one.
    var problem: Problem? {
        switch self {
        case .refused(let problem): problem
        case .manifest(let refusals, _): refusals.problem
        case .usage, .unreachable, .timedOut, .other, .ended: nil
        }
    }

    /// What standard error says; `nil` when everything was said.
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
        // What there is not, and what is in the way, the detail names; elsewhere the title says what it is about.
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
    /// Runs what listens at an address, and says it in words if somebody else does already.
    static func listening(at address: ListenAddress, _ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch  where String(describing: error).firstRange(of: Errno.addressInUse.description) != nil {
            throw CommandFailure.other("\(address) is in use; give another address by --listen")
        }
    }
}
