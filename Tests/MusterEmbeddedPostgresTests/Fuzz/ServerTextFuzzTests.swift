import FoundationEssentials
import MusterTestSupport
import SystemPackage
import Testing

@testable import MusterEmbeddedPostgres

/// What a private server leaves in its log and in its lock file.
@Suite("Texts of a server that are nearly right")
struct ServerTextFuzzTests {
    @Test func reasonIsAPieceOfTheLog() throws {
        let corpus = [
            "2026-03-01 LOG:  starting\nFATAL:  XX001: could not open file \"global/pg_control\": Permission denied\n",
            "PANIC:  could not locate a valid checkpoint record", "initdb: error: directory exists\nFATAL:  no",
            "FATAL:  configuration file \"/d/postgresql.conf\" contains errors\nLOG:  x: No space left on device",
        ]
        try ByteFuzzer(corpus).run { input in
            let log = input.text
            let damage = ClusterTrouble.damage(in: log)
            for text in [damage, ClusterTrouble.reason(in: log), ClusterTrouble.denial(in: log)] {
                guard let text else { continue }
                let lines = log.split(separator: "\n")
                try input.expect(lines.contains { $0.hasSuffix(text) }, "no line ends with \(text.debugDescription)")
            }
            try input.expect(damage == nil || ClusterTrouble.reason(in: log) != nil, "there is damage without a reason")
            try input.expect(
                !(ClusterTrouble.blamesSettings(log) && ClusterTrouble.isDenied(in: log)), "two things are to blame")
            return ClusterTrouble.reason(in: log) != nil
        }
    }

    @Test func processOfALockFileIsOneThatMayBeSignalled() throws {
        let directory = try TemporaryDirectory()
        let corpus = [
            "4711\n/data\n1772366400\n5432\n/run/postgresql\nlocalhost\n 1 2\nready   \n", "1\n", "-1\n",
            "2147483648\n", "7\n",
        ]
        try ByteFuzzer(corpus).run { input in
            let path = directory.path.appending(PostmasterFile.name).string
            try #require(FileManager.default.createFile(atPath: path, contents: Data(input.bytes)))
            guard let file = try PostmasterFile.read(dataDirectory: directory.path) else { return false }
            // Signals to 0, 1 and negative numbers go to whole groups of processes, or to the first process.
            try input.expect(file.processID > 1, "the process is \(file.processID)")
            let first = input.text.split(separator: "\n", omittingEmptySubsequences: false).first ?? ""
            try input.expect(Int32(first) == file.processID, "the first line is \(first)")
            return true
        }
    }
}
