import FoundationEssentials
import MusterTestSupport
import SystemPackage

/// A job for a program: to fetch files, whose names are the last segments of their URLs, into one directory.
struct FetchJob: Sendable {
    /// The URLs.
    var urls: [String]
    /// The files' names, in the same order.
    var names: [String]
    /// The common beginning of all URLs, without a slash at the end.
    var base: String
    /// How many bytes each file has.
    var size: Int64
    /// A file with a URL per line.
    var urlList: FilePath
    /// A file with a name per line.
    var nameList: FilePath
    /// A file of options for curl, with all URLs.
    var curlList: FilePath

    /// Writes the lists for a job.
    ///
    /// - Parameter scratch: A directory that lasts longer than the job.
    init(_ files: OriginFiles, scratch: FilePath) throws {
        urls = files.urls
        names = files.names
        base = files.url
        size = files.size
        urlList = scratch.appending("urls.txt")
        nameList = scratch.appending("names.txt")
        curlList = scratch.appending("curl.conf")
        try Bench.write(urls.map { "\($0)\n" }.joined().utf8, to: urlList)
        try Bench.write(names.map { "\($0)\n" }.joined().utf8, to: nameList)
        try Bench.write(urls.map { "url = \"\($0)\"\n" }.joined().utf8, to: curlList)
    }
}

/// Another program that fetches files.
struct Peer: Sendable {
    /// Its name in reports.
    let name: String
    /// The program.
    let program: String
    /// The arguments of the commands that do a job together, one after the other.
    let commands: @Sendable (FetchJob, FilePath) -> [[String]]

    /// Does a job: makes a directory and fetches everything into it. The written files are on storage at the end, as Muster's files are.
    func run(_ bench: Bench, _ job: FetchJob, in parent: FilePath, turn: Int) async throws -> Sample {
        guard let path = InstalledProgram.find(program) else { throw BenchFailure("\(program) is not installed") }
        return try await Self.run(
            bench, path, commands: { commands(job, $0) }, job, in: parent.appending("\(program)-\(turn)"))
    }

    /// Does a job with any program.
    static func run(
        _ bench: Bench, _ program: FilePath, commands: (FilePath) -> [[String]], _ job: FetchJob, in directory: FilePath
    ) async throws -> Sample {
        try Bench.make(directory)
        var sample = Sample(value: 0, cpuSeconds: ["own": 0], peakMebibytes: ["own": 0])
        let begin = ContinuousClock.now
        for arguments in commands(directory) {
            let outcome = try await TimedCommand(program: program, arguments: arguments).run()
            sample.cpuSeconds["own"]? += outcome.cpuSeconds
            sample.peakMebibytes["own"] = max(sample.peakMebibytes["own"] ?? 0, outcome.peakMebibytes)
        }
        try await bench.flush(directory)
        sample.value = (ContinuousClock.now - begin).seconds
        try Bench.check(directory, files: job.names.count, size: job.size)
        try Bench.clear(directory, files: job.names.count, size: job.size)
        return sample
    }

    /// The peers that are installed on this machine, and a note for each missing one.
    static func installed(_ peers: [Peer]) -> (peers: [Peer], notes: [String]) {
        let missing = Set(peers.map(\.program).filter { InstalledProgram.find($0) == nil })
        let notes = missing.sorted().map { "\($0) is not installed, and left out" }
        return (peers.filter { !missing.contains($0.program) }, notes)
    }

    private static let aria2 = [
        "--no-conf", "--quiet", "--file-allocation=none", "--auto-file-renaming=false", "--allow-overwrite=true",
        "--min-split-size=1M",
    ]

    /// The peers for many small files.
    static let forSmallFiles = [
        Peer(name: "aria2c -j16", program: "aria2c") { job, directory in
            [aria2 + ["-j16", "-x1", "-s1", "-d", directory.string, "-i", job.urlList.string]]
        },
        Peer(name: "curl --parallel", program: "curl") { job, directory in
            [
                [
                    "-q", "-s", "-S", "--no-progress-meter", "--fail", "--parallel", "--parallel-max", "64",
                    "--remote-name-all",
                    "--output-dir", directory.string, "-K", job.curlList.string,
                ]
            ]
        },
        Peer(name: "wget2 --max-threads=16", program: "wget2") { job, directory in
            [
                [
                    "--no-config", "-q", "--max-threads=16", "-P", directory.string, "-i", job.urlList.string,
                ]
            ]
        },
        Peer(name: "rclone copy --transfers 16", program: "rclone") { job, directory in
            [rclone(job, directory, ["--transfers", "16"])]
        },
    ]

    /// The peers for a few large files.
    static let forLargeFiles = [
        Peer(name: "aria2c -x4 -s4", program: "aria2c") { job, directory in
            [aria2 + ["-x4", "-s4", "-j\(job.urls.count)", "-d", directory.string, "-i", job.urlList.string]]
        },
        Peer(name: "curl --parallel", program: "curl") { job, directory in
            [
                [
                    "-q", "-s", "-S", "--no-progress-meter", "--fail", "--parallel", "--remote-name-all",
                    "--output-dir", directory.string,
                    "-K", job.curlList.string,
                ]
            ]
        },
        Peer(name: "wget2", program: "wget2") { job, directory in
            [["--no-config", "-q", "-P", directory.string, "-i", job.urlList.string]]
        },
        Peer(name: "axel -n4", program: "axel") { job, directory in
            zip(job.urls, job.names).map { url, name in ["-q", "-n4", "-o", directory.appending(name).string, url] }
        },
        Peer(name: "lftp pget -n4", program: "lftp") { job, directory in
            [["-c", job.urls.map { "pget -n 4 -O \(directory) \($0)" }.joined(separator: "; ")]]
        },
        Peer(name: "rclone copy, 4 streams", program: "rclone") { job, directory in
            [
                rclone(
                    job, directory,
                    [
                        "--transfers", "\(job.urls.count)", "--multi-thread-streams", "4", "--multi-thread-cutoff",
                        "1M",
                    ])
            ]
        },
    ]

    private static func rclone(_ job: FetchJob, _ directory: FilePath, _ options: [String]) -> [String] {
        [
            "copy", ":http:", directory.string, "--http-url", job.base, "--files-from", job.nameList.string,
            "--no-traverse", "--config", "/dev/null", "--quiet",
        ] + options
    }
}
