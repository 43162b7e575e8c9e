import FoundationEssentials
import Glibc
import Synchronization
import SystemPackage

/// The reader of standard output went away.
struct OutputClosed: Error, CustomStringConvertible {
    /// What has happened, for people.
    var description: String { "nobody reads it any more" }
}

/// Where a command prints: results on standard output, everything else on standard error.
///
/// With `--json` standard output gets nothing but documents.
final class Console: Sendable {
    /// Whether results are JSON.
    let json: Bool
    /// Whether the work goes on when nobody reads what is said of it.
    private let outlivesReader: Bool
    /// The coordinators that were named on the command line, as it was typed there.
    private let server: String?
    private let output: FileDescriptor
    private let errorOutput: FileDescriptor
    /// What stands in place on the live terminal. Its lock keeps the lines of several tasks apart.
    private let region = Mutex(LiveRegion())
    /// How often the process had gone on when something was last shown in place.
    private let continuations = Atomic<Int>(Terminal.continuations)
    /// Whether it was said that lines can't be written.
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

    /// The width that tables may take; `nil` when nobody looks.
    var tableWidth: Int? {
        Terminal.isTerminal(output) ? Terminal.size(of: output).columns : nil
    }

    /// A line for people, broken between words where a terminal is too narrow for it. Control characters must have been escaped.
    func line(_ text: String) throws {
        try saying { try write(fitted(text, to: output), to: output) }
    }

    /// The last line of a command that is stopped. What stops it may have ended the reader of standard output too, as Ctrl-C does with all of a pipe;
    /// standard error has the line then, and nothing is said to go on.
    func lastLine(_ text: String) {
        do {
            try write(fitted(text, to: output), to: output)
        } catch {
            remark(text)
        }
    }

    /// What is said to people on the way is not the work: where it can't be written, as on a full disk, the work goes on, and standard error says so once.
    /// A command that does nothing but say something ends with its reader.
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

    /// Whether something is missing of what was said.
    var hasLostLines: Bool { isMute.withLock { $0 } }

    /// A value as one line of JSON: a document, or an item of NDJSON.
    func document(_ value: some Encodable) throws {
        do {
            try write(Self.encoded(value) + "\n", to: output)
        } catch let error as Errno {
            throw CommandFailure.other("standard output can't be written (\(error))")
        }
    }

    /// A remark that is not the result. A standard error that nobody reads is no reason to stop.
    func remark(_ text: String) {
        try? write(fitted(text, to: errorOutput), to: errorOutput)
    }

    /// The text with its line ends: a terminal would break lines inside words. Commands that it says to type ask the coordinators that this one asks.
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

    /// Shows lines in place at the bottom of the live terminal. What else is printed there stands above them.
    func show(_ lines: [String], on terminal: FileDescriptor) throws {
        let size = Terminal.size(of: terminal)
        try saying {
            try region.withLock { region in
                leaveIfContinued(&region)
                try Self.write(region.redraw(lines, size: size), to: terminal)
            }
        }
    }

    /// Takes away what stands in place.
    func clear() throws {
        try saying { try region.withLock { try clear(&$0) } }
    }

    private func clear(_ region: inout LiveRegion) throws {
        leaveIfContinued(&region)
        guard !region.isEmpty, let terminal = liveTerminal else { return }
        try Self.write(region.clear(size: Terminal.size(of: terminal)), to: terminal)
    }

    /// A process that was stopped and goes on finds what the shell has written below its lines.
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
