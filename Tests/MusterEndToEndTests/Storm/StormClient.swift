import MusterAPI
import MusterCore
import MusterTestSupport

/// One of several clients that send random verbs at the same time (F17).
struct StormClient: Sendable {
    let client: MusterClient
    let ledger: StormLedger
    let origins: StormOrigins
    var random: SeededGenerator

    /// The names of the groups.
    static let groups = (0..<20).map { "g\($0)" }
    /// The names of the workers.
    static let workers = (0..<4).map { "w\($0)" }

    /// Makes every group, with a few files each.
    mutating func begin() async {
        for group in Self.groups { await report(.create) { try await $0.create(group) } }
    }

    /// Sends one random verb after the other.
    mutating func run(until end: ContinuousClock.Instant) async throws {
        while ContinuousClock.now < end {
            let deed = StormDeed.choose(using: &random)
            let group = some(Self.groups)
            await report(deed) { try await $0.act(deed, on: group) }
            // Between two deeds there is time for a few files.
            try await Task.sleep(for: .milliseconds(Int.random(in: 10...120, using: &random)))
        }
    }

    /// Refusals are expected if they say that another client was faster.
    private mutating func report(_ deed: StormDeed, _ act: (inout StormClient) async throws -> Void) async {
        do {
            try await act(&self)
            ledger.did("\(deed.rawValue)")
        } catch let problem as Problem {
            ledger.did("\(deed.rawValue): \(problem.code.rawValue)")
            switch problem.code {
            // Groups would wait for each other.
            case .invalidRequest where deed == .chain: break
            case .groupNotFound, .taskNotFound, .workerNotFound, .groupExists, .groupSealed, .groupFinished,
                .destinationTaken, .conflict, .busy, .databaseUnavailable, .stopping:
                break
            case .invalidRequest, .tooLarge, .unauthorized, .forbidden, .foreignHost, .foreignOrigin,
                .unsupportedMediaType, .expectationFailed, .subscriptionNotFound, .deliveryNotFound,
                .consumerNotFound, .sessionNotFound, .notFound, .methodNotAllowed, .subscriptionExists, .eventsGone,
                .otherLog, .internal:
                ledger.isSurprised(by: "\(deed.rawValue): \(problem)")
            }
        } catch is Unreachable {
            ledger.did("\(deed.rawValue): unreachable")
        } catch {
            ledger.isSurprised(by: "\(deed.rawValue): \(error)")
        }
    }

    private mutating func act(_ deed: StormDeed, on group: String) async throws {
        switch deed {
        case .pause: _ = try await client.apply(.pause, to: group, keys: keys(of: group, wholePercent: 40))
        case .resume: _ = try await client.apply(.resume, to: group, keys: keys(of: group, wholePercent: 60))
        case .cancel: _ = try await client.apply(.cancel, to: group, keys: keys(of: group, wholePercent: 20))
        case .retry: _ = try await client.apply(.retry, to: group, keys: keys(of: group, wholePercent: 70))
        case .seal: _ = try await client.apply(.seal, to: group)
        case .remove: try await remove(from: group)
        case .create: try await create(group)
        case .add: try await add(to: group)
        case .addAgain: try await addAgain(to: group)
        case .reopen: _ = try await client.reopen(group: group)
        case .share:
            let patch = GroupPatch(priority: number(0...3), weight: number(1...9))
            _ = try await client.change(group: group, patch)
        case .cap:
            ledger.caps(group, isDone: false)
            defer { ledger.caps(group, isDone: true) }
            _ = try await client.change(group: group, patch(deed, of: group))
        case .window, .deadline, .chain: _ = try await client.change(group: group, patch(deed, of: group))
        case .drain: try await client.drain(worker: some(Self.workers))
        case .origin:
            _ = try await client.setOrigin(
                some(origins.keys), OriginPatch(maxConnections: .set(number(2...16)), pauseFor: "\(number(1...900))ms"))
        }
    }

    private mutating func patch(_ deed: StormDeed, of group: String) -> GroupPatch {
        switch deed {
        case .cap:
            let rate = Change<Int64>.set(Int64(number(256...4_096)) << 10)
            return GroupPatch(
                limits: GroupLimitsPatch(
                    maxConnections: chance(50) ? .set(number(1...6)) : .clear,
                    bytesPerSecond: chance(50) ? rate : .clear))
        case .window:
            // One hour of the day, which is seldom the present one, or all of the day but one hour.
            let hour = number(0...22)
            let (from, to) = (Self.time(hour), Self.time(hour + 1))
            let window = TimeWindow(from: chance(30) ? from : to, to: chance(30) ? to : from, timeZone: "UTC")
            return GroupPatch(
                limits: GroupLimitsPatch(between: chance(50) && window.from != window.to ? .set(window) : .clear))
        case .deadline:
            return GroupPatch(
                deadline: chance(60) ? .set("\(number(1...15))s") : .clear, onDeadline: chance(50) ? .fail : .continue)
        case .chain:
            let other = GroupPrerequisite(group: some(Self.groups), on: chance(70) ? .finished : .succeeded)
            return GroupPatch(after: chance(50) && other.group != group ? [other] : [])
        case .pause, .resume, .cancel, .retry, .seal, .remove, .create, .add, .addAgain, .reopen, .share, .drain,
            .origin:
            return GroupPatch()
        }
    }

    private mutating func create(_ group: String) async throws {
        let files = newFiles(number(3...14), of: group)
        var request = GroupRequest(name: group, sealed: chance(70), priority: number(0...3), tasks: files.map(\.task))
        request.weight = number(1...9)
        request.fetch = FetchOptions()
        request.fetch?.firstByteTimeoutSeconds = 2
        request.fetch?.lowSpeedBytesPerSecond = 1_024
        request.fetch?.lowSpeedSeconds = 2
        _ = try await client.createGroup(request, idempotencyKey: "\(random.next())")
    }

    private mutating func add(to group: String) async throws {
        let files = newFiles(number(1...6), of: group)
        _ = try await client.addTasks(files.map(\.task), to: group, reopen: chance(80))
    }

    private mutating func addAgain(to group: String) async throws {
        let files = ledger.files
        let old = (keys(of: group, wholePercent: 0) ?? []).compactMap { files[$0]?.task }
        _ = try await client.addTasks(old, to: group, reopen: chance(80))
    }

    private mutating func remove(from group: String) async throws {
        let mode: RemovedFiles = chance(50) ? .delete : .keep
        guard let keys = keys(of: group, wholePercent: 15) else {
            // Tasks that are added during the request may be removed as well, and the removal may have happened even if its answer is lost.
            defer { ledger.removes(ledger.paths(of: group), mode) }
            try await client.removeGroup(group, files: mode)
            return
        }
        for key in keys.prefix(3) {
            ledger.removes([key], mode)
            try await client.removeTask(key, of: group, files: mode)
        }
    }

    private mutating func newFiles(_ count: Int, of group: String) -> [StormFile] {
        (0..<count).map { _ in
            let file = origins.file(ledger.nextNumber(), of: group, using: &random)
            ledger.wants(file, in: group)
            return file
        }
    }

    /// Some keys of a group, or nil for all of it.
    private mutating func keys(of group: String, wholePercent: Int) -> [String]? {
        let keys = ledger.paths(of: group)
        guard !keys.isEmpty, !chance(wholePercent) else { return nil }
        // The last ones are more likely to be under way.
        return (0..<number(1...5)).map { _ in
            keys[keys.count - 1 - Int.random(in: 0..<min(keys.count, 20), using: &random)]
        }
    }

    private mutating func some(_ names: [String]) -> String { names[Int.random(in: 0..<names.count, using: &random)] }
    private mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }
    private mutating func number(_ range: ClosedRange<Int32>) -> Int32 { .random(in: range, using: &random) }
    private mutating func number(_ range: ClosedRange<Int>) -> Int { .random(in: range, using: &random) }
    private static func time(_ hour: Int) -> String { hour < 10 ? "0\(hour):00" : "\(hour):00" }
}
