import Glibc
import Subprocess
public import SystemPackage

/// A real process: its output is kept and can be waited on, and it is killed when this object is freed or when the test
/// process ends, together with its process group, which is its own.
public final class TestProcess: Sendable {
    /// How a process ended.
    public enum Exit: Sendable, Hashable {
        /// By itself, with this status.
        case exited(Int32)
        /// By this signal.
        case signaled(Int32)
    }

    /// One of the two outputs, or both.
    public enum Stream: Sendable, Hashable {
        case standardOutput
        case standardError
        case either
    }

    /// What the process reads.
    public enum Input: Sendable, Hashable {
        /// Nothing: `/dev/null`.
        case none
        /// This text, then the end of the file.
        case text(String)
        /// A terminal-like open end: nothing, and no end of the file until the process ends.
        case open
    }

    struct Progress: Sendable {
        var processID: Int32?
        var exit: Exit?
        var launchFailure: String?
        var output = BoundedText()
        var error = BoundedText()
        var openStreams = 2
        var isGroupGone = false
    }

    /// The process id, which is the id of its process group too.
    public let processID: Int32
    /// How it is named in errors.
    public let name: String
    private let progress: Observed<Progress>
    private let end: Task<Void, Never>

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - arguments: Without the program's own name.
    ///   - environment: Changes to the environment of the test process; nil removes a variable.
    ///   - outputLimitBytes: How many bytes of each output are kept; of a longer output, the end.
    /// - Throws: ``LaunchFailed``.
    public static func start(
        _ program: FilePath,
        arguments: [String] = [],
        environment: [String: String?] = [:],
        workingDirectory: FilePath? = nil,
        input: Input = .none,
        outputLimitBytes: Int = 4 << 20
    ) async throws -> TestProcess {
        let progress = Observed(Progress())
        progress.update {
            $0.output.limitBytes = outputLimitBytes
            $0.error.limitBytes = outputLimitBytes
        }
        let output = try await OutputPipe.open { bytes in progress.update { $0.take(bytes, from: .standardOutput) } }
        let error = try await OutputPipe.open { bytes in progress.update { $0.take(bytes, from: .standardError) } }
        let source = try InputFile.open(input)
        var options = PlatformOptions()
        options.processGroupID = 0
        var changes: [Environment.Key: String?] = [:]
        for (name, value) in environment { changes[Environment.Key(stringLiteral: name)] = .some(value) }
        let configuration = Subprocess.Configuration(
            executable: .path(program),
            arguments: Arguments(arguments),
            environment: .inherit.updating(changes),
            workingDirectory: workingDirectory,
            platformOptions: options
        )
        let end = Task {
            do {
                let result = try await Subprocess.run(
                    configuration,
                    input: .fileDescriptor(source.readEnd, closeAfterSpawningProcess: true),
                    output: .fileDescriptor(output, closeAfterSpawningProcess: true),
                    error: .fileDescriptor(error, closeAfterSpawningProcess: true)
                ) { execution in
                    let processID = execution.processIdentifier.value
                    Reaper.shared.tell(.kill(group: processID))
                    progress.update { $0.processID = processID }
                }
                try source.writeEnd?.close()
                let exit: Exit =
                    switch result.terminationStatus {
                    case .exited(let status): .exited(status)
                    case .signaled(let signal): .signaled(signal)
                    }
                // The number of the group may be used again, unless other processes of the group still live.
                if kill(-result.processIdentifier.value, 0) != 0 {
                    Reaper.shared.tell(.forgetGroup(result.processIdentifier.value))
                    progress.update { $0.isGroupGone = true }
                }
                progress.update { $0.exit = exit }
            } catch {
                progress.update { $0.launchFailure = "\(error)" }
            }
        }
        let started = try await progress.wait(for: "the start of \(program)") {
            $0.processID != nil || $0.launchFailure != nil
        }
        guard let processID = started.processID else {
            throw LaunchFailed(program: program, reason: started.launchFailure ?? "unknown")
        }
        return TestProcess(
            processID: processID,
            name: program.lastComponent?.string ?? program.string,
            progress: progress,
            end: end
        )
    }

    /// A program that could not be started.
    public struct LaunchFailed: Error, Sendable, Hashable {
        /// The program.
        public let program: FilePath
        /// The error of the system.
        public let reason: String
    }

    private init(processID: Int32, name: String, progress: Observed<Progress>, end: Task<Void, Never>) {
        self.processID = processID
        self.name = name
        self.progress = progress
        self.end = end
    }

    deinit {
        guard !progress.value.isGroupGone else { return }
        _ = kill(-processID, SIGKILL)
        Reaper.shared.tell(.forgetGroup(processID))
    }

    /// What it has printed on standard output so far.
    public var standardOutput: String { progress.value.output.text }
    /// What it has printed on standard error so far.
    public var standardError: String { progress.value.error.text }
    /// How it ended; nil while it runs.
    public var exit: Exit? { progress.value.exit }

    /// Waits for a complete line that contains a text, and returns it without its line end.
    ///
    /// - Throws: ``TimedOut``, also as soon as the process has ended without printing such a line.
    @discardableResult
    public func waitForLine(
        containing text: String,
        in stream: Stream = .either,
        limit: Duration = TimedOut.defaultLimit
    ) async throws -> String {
        let find: @Sendable (Progress) -> String? = { progress in
            progress.texts(of: stream).lazy.compactMap { $0.completeLine(containing: text) }.first
        }
        let seen = try await wait(for: "a line with “\(text)” from \(name)", limit: limit) { find($0) != nil }
        return find(seen) ?? ""
    }

    /// Waits until what it printed, from the beginning, fulfils a condition.
    public func waitForOutput(
        in stream: Stream = .standardOutput,
        limit: Duration = TimedOut.defaultLimit,
        matching condition: @escaping @Sendable (String) -> Bool
    ) async throws {
        try await wait(for: "matching output of \(name)", limit: limit) { progress in
            progress.texts(of: stream).contains { condition($0.text) }
        }
    }

    /// Waits for its end, and for the end of its outputs unless a descendant holds them open.
    @discardableResult
    public func waitForExit(limit: Duration = TimedOut.defaultLimit) async throws -> Exit {
        let ended = try await progress.wait(
            for: "the end of \(name)",
            limit: limit,
            details: { $0.report },
            until: { $0.exit != nil }
        )
        do {
            try await progress.wait(for: "the end of its outputs", limit: .seconds(2)) { $0.openStreams == 0 }
        } catch is TimedOut {
            // A descendant still holds them open. What it prints later is kept as well.
        }
        return ended.exit ?? .exited(-1)
    }

    /// Sends it a signal, such as `SIGTERM`, `SIGKILL`, `SIGSTOP` or `SIGCONT`; a process that has ended gets none.
    public func signal(_ number: Int32) throws {
        guard exit == nil else { return }
        guard kill(processID, number) == 0 else { throw Errno(rawValue: errno) }
    }

    /// Sends a signal to it and to all of its descendants, in whatever group they are.
    public func signalTree(_ number: Int32) {
        let descendants = ProcessTree.descendants(of: processID)
        if exit == nil { _ = kill(-processID, number) }
        for descendant in descendants { _ = kill(descendant, number) }
    }

    /// Kills it and all of its descendants (SIGKILL), and waits for its end.
    public func killTree() async throws {
        // Stopped first, so that no process is forked while the list is made.
        signalTree(SIGSTOP)
        signalTree(SIGKILL)
        try await waitForExit()
    }

    @discardableResult
    private func wait(
        for what: String,
        limit: Duration,
        until condition: @escaping @Sendable (Progress) -> Bool
    ) async throws -> Progress {
        let details: @Sendable (Progress) -> String = { [processID] progress in
            progress.report + (progress.exit == nil ? "\nthreads:\n" + ProcessTree.threads(of: processID) : "")
        }
        let seen = try await progress.wait(for: what, limit: limit, details: details) {
            condition($0) || ($0.exit != nil && $0.openStreams == 0)
        }
        guard condition(seen) else { throw TimedOut(what: what, limit: limit, details: seen.report) }
        return seen
    }
}
