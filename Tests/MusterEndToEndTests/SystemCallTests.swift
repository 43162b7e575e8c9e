import FoundationEssentials
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// The system calls of a worker: at most today's number and a margin, of the calls that don't depend on clocks and other programs.
    @Suite struct SystemCalls {
        /// How often each system call was made.
        private struct Counts {
            private var calls: [Substring: Int] = [:]

            /// What `strace -c` printed: share, seconds, microseconds a call, calls, errors where there are some, and the name.
            init(summary: String) throws {
                for line in summary.split(separator: "\n") {
                    let fields = line.split(separator: " ")
                    guard fields.count >= 5, let name = fields.last, name != "total", let count = Int(fields[3]) else {
                        continue
                    }
                    calls[name] = count
                }
                guard !calls.isEmpty else { throw Unexpected("no system calls in \(summary)") }
            }

            /// The number of calls of these names, or of all calls.
            func callAsFunction(_ names: Substring...) -> Int {
                names.isEmpty ? calls.values.reduce(0, +) : names.reduce(0) { $0 + calls[$1, default: 0] }
            }
        }

        /// The system calls of a worker that fetches these files and leaves.
        ///
        /// - Parameter isThere: whether another worker has fetched them before.
        private func count(
            _ files: [(path: String, size: Int)], chunk: String = "8MiB", isThere: Bool = false
        ) async throws -> Counts {
            let root = try TemporaryDirectory()
            for file in files {
                try Data(repeating: 0x6d, count: file.size).write(
                    to: URL(filePath: root.path.appending(file.path).string))
            }
            let nginx = try await NginxServer.start(documentRoot: root.path)
            var counts: Counts?
            try await Fleet.run(timeToLive: "30s", options: ["--minimum-chunk", chunk]) { fleet in
                try await fleet.knowOrigins()
                let summary = fleet.scratch.appending("calls")
                let lines = files.map { #"{"urls": ["\#(nginx.url)/\#($0.path)"], "path": "\#($0.path)"}"# }
                let manifest = fleet.scratch.appending("manifest.ndjson")
                try Data(lines.joined(separator: "\n").utf8).write(to: URL(filePath: manifest.string))
                if isThere {
                    let before = try await fleet.startWorker("b", slots: 16)
                    _ = try await fleet.muster(
                        ["add", "before", "-i", manifest.string, "--wait"], limit: .seconds(240))
                    _ = try await fleet.muster(["drain", "b"])
                    _ = try await before.waitForExit(limit: .seconds(30))
                }
                let worker = try await fleet.startWorker(
                    "a", slots: 16, prefix: ["strace", "-f", "-qq", "-c", "-o", summary.string])
                _ = try await fleet.muster(
                    ["add", "g", "-i", manifest.string, "--if-exists", "replace", "--wait"], limit: .seconds(240))
                let group = try await fleet.client().group("g")
                #expect(group.tasks.succeeded == Int64(files.count))
                _ = try await fleet.muster(["drain", "a"])
                _ = try await worker.waitForExit(limit: .seconds(30))
                counts = try Counts(
                    summary: String(decoding: Data(contentsOf: URL(filePath: summary.string)), as: UTF8.self))
            }
            try await nginx.stop()
            return try #require(counts)
        }

        @Test func aSmallFileCostsAWorkerFewSystemCalls() async throws {
            let files = 1_000
            let calls = try await count((0..<files).map { ("\($0)", 16_384) })
            let (opened, written, named) = (
                calls("openat"), calls("pwrite64"), calls("renameat2", "renameat", "linkat")
            )
            let looked = calls("newfstatat", "fstat", "stat", "statx", "access", "openat2")
            let (synced, asked) = (calls("fsync", "fdatasync", "syncfs"), calls("sendto", "sendmsg"))
            print(
                "\(files) files: opened \(opened), looked \(looked), written \(written), named \(named), synced \(synced), asked \(asked), all \(calls())"
            )
            // The part is looked for and made; two names: new, file.
            #expect(opened <= 2_300)
            // Seven and a half for each file, and one for each sync of a batch: how many files share a batch depends on the disk.
            #expect(looked <= 7_700 + synced * 5 / 4)
            #expect(written <= 1_100)
            #expect(named <= 1_100)
            // The files of a batch share their syncs. How large a batch is depends on the disk; a file on its own needs two calls. Without any, nothing
            // is durable.
            #expect(synced > 0 && synced <= files)
            #expect(asked <= 2_500)
        }

        @Test func aFileThatIsThereSharesItsSyncsWithOthers() async throws {
            let files = 500
            let calls = try await count((0..<files).map { ("\($0)", 16_384) }, isThere: true)
            let (one, all) = (calls("fdatasync"), calls("fsync", "fdatasync", "syncfs"))
            print("\(files) files that are there: synced \(one) by themselves, \(all) in all")
            // How many files share a sync depends on the disk; on its own, each file would need one.
            #expect(one <= files / 2 && all <= files)
        }

        @Test func aMebibyteCostsAWorkerFewSystemCalls() async throws {
            let mebibytes = 256
            let calls = try await count([("big", mebibytes << 20)])
            let (written, read) = (calls("pwrite64"), calls("recvfrom", "read"))
            print("\(mebibytes) MiB: written \(written), read \(read), all \(calls())")
            // libcurl hands over 16 KiB at a time, and reads up to 256 KiB: as much as has arrived by then, which depends on the sender.
            #expect(written <= 72 * mebibytes)
            #expect(read <= 16 * mebibytes)
        }
    }
}
