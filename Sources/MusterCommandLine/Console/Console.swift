import FoundationEssentials
import Glibc
import Synchronization
import SystemPackage

/// The reader of standard output went away.
struct OutputClosed: Error, CustomStringConvertible {
    /// The error in words.
    var description: String { "its reader is gone" }
}

/// Where a command prints: results on standard output, everything else on standard error.
///
/// With `--json` standard output gets nothing but documents.
final class Console: Sendable {
    /// Whether results are JSON.
    let json: Bool
    /// Whether the command goes on when the reader of standard output is gone.
    private let outlivesReader: Bool
    /// The coordinators that were named on the command line, as it was typed there.
    private let server: String?
    private let output: FileDescriptor
    private let errorOutput: FileDescriptor
    /// The lines that are shown in place on the live terminal. The lock keeps the output of concurrent tasks apart.
    private let region = Mutex(LiveRegion())
    /// The value of `Terminal.continuations` at the last output.
    private let continuations = Atomic<Int>(Terminal.continuations)
    /// Whether standard error has said that standard output can't be written.
    private let isMute = Mutex(false)

    /// A console on two descriptors; tests give pipes.
    init(
        json: Bool, outlivesReader: Bool = false, server: String? = nil, output: FileDescriptor = .standardOutput,
        errorOutput: FileDescriptor = .standardError
    ) {
        self.server = server
        self.json = json
        self.outlivesReader = outlivesReader
        self.output = output
        self.errorOutput = errorOutput
    }

    /// The terminal that may show progress in place, if there is one: standard output, or standard error while
    /// standard output carries JSON.
    var liveTerminal: FileDescriptor? {
        let candidate = json ? errorOutput : output
        return Terminal.isTerminal(candidate) ? candidate : nil
    }

    /// The width that tables may take, in columns; `nil` if standard output is no terminal.
    var tableWidth: Int? {
        Terminal.isTerminal(output) ? Terminal.size(of: output).columns : nil
    }

    /// A line for people, broken between words where a terminal is too narrow for it. Control characters must have been escaped.
    func line(_ text: String) throws {
        try saying { try write(fitted(text, to: output), to: output) }
    }

    /// The last line of a command that is stopped. The signal may have ended the reader of standard output too, as Ctrl-C does with all processes of
    /// a pipe. The line goes to standard error then, without the remark that the work goes on.
    func lastLine(_ text: String) {
        do {
            try write(fitted(text, to: output), to: output)
        } catch {
            remark(text)
        }
    }

    /// Writes a message that is not the command's result. If the write fails, as on a full disk, the work goes on, and standard error says so once.
    /// A command that only prints ends with its reader.
    private func saying(_ body: () throws -> Void) throws {
        do {
            try body()
        } catch let error as OutputClosed where !outlivesReader {
            throw error
        } catch {
            let isNews = isMute.withLock { isMute in
                defer { isMute = true }
                return !isMute
            }
            if isNews {
                remark("standard output can't be written (\(error))" + (outlivesReader ? "; the work goes on" : ""))
            }
        }
    }

    /// Whether lines are missing in the output.
    var hasLostLines: Bool { isMute.withLock { $0 } }

    /// A value as one line of JSON: a document, or an item of NDJSON.
    func document(_ value: some Encodable) throws {
        do {
            try write(Self.encoded(value) + "\n", to: output)
        } catch let error as Errno {
            throw CommandFailure.other("standard output can't be written (\(error))")
        }
    }

    /// A remark on standard error that is not the result. A failed write is ignored: a missing reader of standard error is no reason to stop.
    func remark(_ text: String) {
        try? write(fitted(text, to: errorOutput), to: errorOutput)
    }

    /// The text with its line ends. For a terminal it is broken between words, since a terminal breaks lines inside words. Commands in the text name the
    /// coordinators that this command asks.
    private func fitted(_ text: String, to descriptor: FileDescriptor) -> String {
        let text = server.map { ServerHint.commands(in: text, naming: $0) } ?? text
        guard Terminal.isTerminal(descriptor) else { return text + "\n" }
        return Self.fitted(text, to: Terminal.size(of: descriptor).columns)
    }

    /// The text in lines of at most `width` columns, broken between words.
    static func fitted(_ text: String, to width: Int) -> String {
        text.split(separator: "\n", omittingEmptySubsequences: false)
            .flatMap { TextWidth.wrapped(String($0), to: width, hanging: 2) }.joined(separator: "\n") + "\n"
    }

    /// Says why a command ended without success. A problem document goes to standard output with `--json`.
    func report(_ failure: CommandFailure) {
        if json, let problem = failure.problem {
            try? document(problem)
        } else if let message = failure.message {
            remark(TextWidth.escaped(message, keepingLineBreaks: true))
        }
    }

    /// Shows lines in place at the bottom of the live terminal. Other output appears above them.
    func show(_ lines: [String], on terminal: FileDescriptor) throws {
        let size = Terminal.size(of: terminal)
        try saying {
            try region.withLock { region in
                leaveIfContinued(&region)
                try Self.write(region.redraw(lines, size: size), to: terminal)
            }
        }
    }

    /// Removes the lines that are shown in place.
    func clear() throws {
        try saying { try region.withLock { try clear(&$0) } }
    }

    private func clear(_ region: inout LiveRegion) throws {
        leaveIfContinued(&region)
        guard !region.isEmpty, let terminal = liveTerminal else { return }
        try Self.write(region.clear(size: Terminal.size(of: terminal)), to: terminal)
    }

    /// Leaves the shown lines where they are if the process was stopped and continued, since the shell has written below them.
    private func leaveIfContinued(_ region: inout LiveRegion) {
        let now = Terminal.continuations
        if continuations.exchange(now, ordering: .relaxed) != now { region.leave() }
    }

    /// The JSON text of a value: fields in alphabetical order, so that two outputs can be compared.
    static func encoded(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }

    private func write(_ text: String, to descriptor: FileDescriptor) throws {
        try region.withLock { region in
            let isShared = Terminal.isTerminal(descriptor)
            leaveIfContinued(&region)
            let shown = region.isEmpty || !isShared ? nil : liveTerminal
            if isShared { try clear(&region) }
            try Self.write(text, to: descriptor)
            if let shown { try Self.write(region.restore(size: Terminal.size(of: shown)), to: shown) }
        }
    }

    private static func write(_ text: String, to descriptor: FileDescriptor) throws {
        do {
            try descriptor.writeAll(text.utf8)
        } catch Errno.brokenPipe {
            throw OutputClosed()
        }
    }
}
