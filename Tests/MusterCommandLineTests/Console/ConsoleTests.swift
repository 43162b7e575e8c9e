import Glibc
import MusterCore
import SystemPackage
import Testing

@testable import MusterCommandLine

@Suite struct ConsoleTests {
    /// A command that does work goes on when its output goes to a full disk; a command that only prints fails at its end.
    @Test(arguments: [true, false]) func linesThatCanNotBeWrittenStopNothing(goesOn: Bool) throws {
        let full = try FileDescriptor.open("/dev/full", .writeOnly)
        let (reader, writer) = try FileDescriptor.pipe()
        let console = Console(json: false, outlivesReader: goesOn, output: full, errorOutput: writer)
        #expect(!console.hasLostLines)
        try console.line("one")
        #expect(console.hasLostLines)
        try console.line("two")
        try full.close()
        try console.line("three")
        try writer.close()
        var bytes = [UInt8](repeating: 0, count: 1_000)
        let count = try bytes.withUnsafeMutableBytes { try reader.read(into: $0) }
        try reader.close()
        let said = String(decoding: bytes[..<count], as: UTF8.self)
        let more = goesOn ? "; the work goes on" : ""
        #expect(said == "standard output can't be written (No space left on device)\(more)\n")
    }

    /// A command whose result is files goes on without a reader of its output; a command that only prints ends.
    @Test func lostReaderEndsACommandThatOnlyPrints() throws {
        // As the program does at its start.
        _ = signal(SIGPIPE, SIG_IGN)
        let (reader, writer) = try FileDescriptor.pipe()
        try reader.close()
        defer { try? writer.close() }
        #expect(throws: OutputClosed.self) { try Console(json: false, output: writer).line("one") }
        let (remarks, errorOutput) = try FileDescriptor.pipe()
        let console = Console(json: false, outlivesReader: true, output: writer, errorOutput: errorOutput)
        try console.line("one")
        try console.line("two")
        // The document is the result that was asked for.
        #expect(throws: OutputClosed.self) { try console.document([1]) }
        try errorOutput.close()
        var bytes = [UInt8](repeating: 0, count: 1_000)
        let count = try bytes.withUnsafeMutableBytes { try remarks.read(into: $0) }
        try remarks.close()
        let said = String(decoding: bytes[..<count], as: UTF8.self)
        #expect(said == "standard output can't be written (its reader is gone); the work goes on\n")
    }

    /// The shell has written below the lines that are redrawn in place.
    @Test(.timeLimit(.minutes(1))) func nothingIsDrawnOverWhatTheShellWroteWhileTheProcessWasStopped() async throws {
        let (reader, writer) = try FileDescriptor.pipe()
        let console = Console(json: false, output: writer)
        var bytes = [UInt8](repeating: 0, count: 1_000)
        let shown = {
            try console.show(["one", "two"], on: writer)
            let count = try bytes.withUnsafeMutableBytes { try reader.read(into: $0) }
            return String(decoding: bytes[..<count], as: UTF8.self)
        }
        let first = try shown()
        #expect(try shown() == "\r\u{1B}[2A" + first.dropFirst())
        let before = Terminal.continuations
        #expect(kill(getpid(), SIGCONT) == 0)
        // Another thread handles the signal.
        while Terminal.continuations == before { await Task.yield() }
        #expect(try shown() == first)
        try reader.close()
        try writer.close()
    }

    /// A command that the output tells the user to type uses the same coordinator as the present command.
    @Test(arguments: [nil, "http://h:1,http://h:2", "http://h:1 "])
    func commandsThatAreToldNameTheServerThatWasTyped(server: String?) throws {
        let (reader, writer) = try FileDescriptor.pipe()
        let console = Console(json: false, server: server, output: writer, errorOutput: writer)
        try console.line("why: muster explain g 'my file'")
        console.remark("muster set g …, and then: muster retry g (muster limit g); of muster up, muster work, a muster")
        try writer.close()
        var bytes = [UInt8](repeating: 0, count: 1_000)
        let count = try bytes.withUnsafeMutableBytes { try reader.read(into: $0) }
        try reader.close()
        let name = server.map { "--server \(ShellWord($0)) " } ?? ""
        #expect(
            String(decoding: bytes[..<count], as: UTF8.self) == """
                why: muster \(name)explain g 'my file'
                muster \(name)set g …, and then: muster \(name)retry g (muster \(name)limit g); of muster up, muster work, a muster

                """)
    }

    /// A truncated document could be taken for a whole one.
    @Test func documentThatCanNotBeWrittenIsAnError() throws {
        let full = try FileDescriptor.open("/dev/full", .writeOnly)
        defer { try? full.close() }
        #expect(throws: CommandFailure.self) { try Console(json: true, output: full, errorOutput: full).document([1]) }
    }
}
