import FoundationEssentials
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

/// Faults of the network, the storage, the origins, and those that other installations have.
extension StormPlay {
    /// Gives a random path of some kinds a fault.
    func disturb(
        _ kinds: [StormLinks.Kind], _ random: inout SeededGenerator, _ make: (inout SeededGenerator) -> PathFault
    ) async throws -> End {
        let path = try scene.links.some(kinds, using: &random)
        await path.inject(make(&random))
        return { await path.inject(nil) }
    }

    func closeOrigin(_ random: inout SeededGenerator) async throws -> End {
        let refusals: [ScriptedOrigin.Refusal] = [503, 403, .close, .reset, .hang]
        guard let origin = scene.origins.hostile.randomElement(using: &random),
            let refusal = refusals.randomElement(using: &random)
        else { throw Unexpected("no origin") }
        origin.refuseConnections(0..<Int.max, refusal)
        return { origin.acceptConnections() }
    }

    func failReceiver(_ random: inout SeededGenerator) -> End {
        scene.receiver.fail(using: &random)
        return { scene.receiver.calm() }
    }

    /// Fills the small sink, has files fetched into it, and makes room again: they all come.
    func fillDisk(_ random: inout SeededGenerator) async throws -> End {
        guard let disk = scene.disk else { throw StormFault.NotPlayed(reason: "mounting needs root") }
        let group = "disk\(random.next())"
        let files = scene.origins.steady.serveFiles(
            "\(group)-", sizes: [300, .kibibytes(60), .mebibytes(2)], seed: random.next())
        try disk.fill()
        let request = GroupRequest(name: group, sink: "small", sealed: true, priority: 50, tasks: files.map(\.task))
        try await fleet.persistently { client in
            do {
                _ = try await client.createGroup(request)
            } catch let problem as Problem where problem.code == .groupExists {
                // The answer to an earlier request was lost.
            }
        }
        return {
            try disk.empty()
            #expect(try await fleet.waitForEnd(of: group).state == .succeeded)
            for file in files {
                #expect(try FileDigest.sha256(disk.outside.appending(file.path)) == file.sha256, "\(file.path)")
            }
            try await fleet.persistently { client in
                do {
                    _ = try await client.removeGroup(group, files: .delete)
                } catch let problem as Problem where problem.code == .groupNotFound {
                    // The answer to an earlier request was lost.
                }
            }
        }
    }

    func disturb(_ order: StormDisturber.Order) async throws -> End {
        guard let disturber = scene.disturber else { throw StormFault.NotPlayed(reason: "libfiu is not installed") }
        guard let worker = await fleet.worker(StormScene.disturbedWorker), worker.exit == nil else {
            throw StormFault.NotPlayed(reason: "the worker was dead")
        }
        try await disturber.send(order.rawValue, to: worker)
        return { try await disturber.send(order.end, to: worker) }
    }

    /// Deletes a part, or half of it, as another program may.
    func spoilPart(isDeleted: Bool, _ random: inout SeededGenerator) async throws -> End {
        // A part lives for a moment or for seconds.
        for _ in 0..<50 {
            if let part = Self.parts(below: fleet.sink).randomElement(using: &random) {
                do {
                    if isDeleted {
                        try FileManager.default.removeItem(atPath: part.string)
                    } else {
                        let file = try FileDescriptor.open(part, .writeOnly)
                        try file.closeAfter { try file.resize(to: file.seek(offset: 0, from: .end) / 2) }
                    }
                    return {}
                } catch {
                    // It is gone: its file is in place, or its task was cancelled.
                }
            }
            try await Task.sleep(for: .milliseconds(20))
        }
        throw StormFault.NotPlayed(reason: "there was no part")
    }

    private static func parts(below sink: FilePath) -> [FilePath] {
        let own = sink.appending(".muster")
        let installations = (try? FileManager.default.contentsOfDirectory(atPath: own.string)) ?? []
        return installations.flatMap { installation in
            let directory = own.appending(installation).appending("parts")
            let names = (try? FileManager.default.contentsOfDirectory(atPath: directory.string)) ?? []
            return names.map { directory.appending($0) }
        }
    }

    func letStrangersWork() async throws -> End {
        _ = try await scene.strangers.fetch(into: fleet.sink)
        return {}
    }

    func sendStrangersBack() async throws -> End {
        try await scene.strangers.goBack(on: fleet.sink)
        return {}
    }

    /// Kills a `get` every time that more of its file has come, twenty times in a long storm.
    func killGet(_ random: inout SeededGenerator) async throws -> End {
        let origin = scene.origins.steady
        let deaths = scene.isLong ? 20 : 2
        let name = "get\(random.next())"
        let file = origin.serveFile(name, size: Int64(deaths + 1) * 307_200, seed: random.next())
        let directory = fleet.scratch.appending(name)
        let arguments = ["get", "-d", directory.string, file.url]
        for _ in 0..<deaths {
            let sent = origin.bytesSent("/\(name)")
            let get = try await TestProcess.muster(arguments)
            try await eventually("more of the file") {
                get.exit != nil || origin.bytesSent("/\(name)") > sent + 51_200
            }
            try await get.killTree()
        }
        let get = try await TestProcess.muster(arguments)
        #expect(try await get.waitForExit(limit: .seconds(120)) == .exited(0), "\(get.standardError.suffix(2_000))")
        #expect(try FileDigest.sha256(directory.appending(name)) == file.sha256, "\(name)")
        return {}
    }
}

extension SeededGenerator {
    /// A random number.
    mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &self) }

    /// A random time.
    mutating func milliseconds(_ range: ClosedRange<Int>) -> Duration { .milliseconds(number(range)) }

    /// One of the two directions of a path.
    mutating func direction() -> PathFault.Direction { Bool.random(using: &self) ? .toServer : .toClient }
}
