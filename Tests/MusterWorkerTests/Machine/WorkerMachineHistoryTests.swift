import MusterAPI
import MusterCore
import Testing

@testable import MusterWorker

/// Random histories: answers are lost, late and doubled, sessions end, sinks fill, jobs end in every way. Whatever happens,
/// the rules of the protocol hold at every step, and once the faults stop, everything is reported and the drain ends.
struct WorkerMachineHistoryTests {
    /// What a coordinator would know, as far as the rules need it.
    private struct Model {
        var harness: MachineHarness
        var random: JitterGenerator
        var session: Int64 = 0
        var waiting: [SyncRequest] = []
        var jobs: Set<LeaseName> = []
        var granted: Set<LeaseName> = []
        var opening = false
        var nextChunk: Int64 = 1
        var faulty = true
        var isStopped = false
        var lastSettled: Int64 = 0
        var lastSequence: Int64 = 0

        init(seed: UInt64) {
            harness = MachineHarness(
                slots: 3,
                sinks: [SinkStatus(name: "default"), SinkStatus(name: "other")],
                seed: seed
            )
            random = JitterGenerator(seed: seed)
        }

        mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

        mutating func absorb(_ effects: [MachineEffect]) {
            var answers: [MachineInput] = []
            for effect in effects {
                #expect(!isStopped, "nothing may follow the stop")
                switch effect {
                case .openSession: opening = true
                case .sync(_, let request): check(request)
                case .abandonSync(let sequence): waiting.removeAll { $0.sequence == sequence }
                case .closeSession: harness.feed(.sessionClosed).contains(.stop) ? (isStopped = true) : ()
                case .start(let lease, _): #expect(jobs.insert(lease.name).inserted)
                case .release(let name), .abort(let name): #expect(jobs.contains(name))
                case .giveBackUntouched(let name):
                    if jobs.remove(name) != nil { answers.append(.job(name, .ended(.released(nil, nil)))) }
                case .shrink(let name, let end), .lengthen(let name, let end):
                    if jobs.contains(name) { answers.append(.job(name, .shrunk(end: end))) }
                case .stop: isStopped = true
                case .guardAddresses, .trust, .suspendWriting, .resumeWriting, .share, .probe, .look, .stopLooking,
                    .log:
                    break
                }
            }
            for answer in answers { feed(answer) }
        }

        mutating func check(_ request: SyncRequest) {
            waiting.append(request)
            #expect(waiting.count <= 2)
            #expect(waiting.count { $0.waitMilliseconds > 0 } <= 1)
            #expect(request.sequence == lastSequence + 1)
            #expect(request.settled >= lastSettled)
            #expect(waiting.allSatisfy { $0.sequence > request.settled })
            #expect(request.reports.isEmpty || request.waitMilliseconds == 0)
            #expect(request.reports.allSatisfy { request.held.contains($0.lease) })
            #expect(Set(request.held).count == request.held.count)
            #expect(Set(request.reports.map(\.lease)).count == request.reports.count)
            // The lease of a job that may still write is reported as held, whatever became of the lease (I13).
            #expect(jobs.isSubset(of: request.held))
            lastSequence = request.sequence
            lastSettled = request.settled
        }

        mutating func feed(_ input: MachineInput) {
            guard !isStopped else { return }
            absorb(harness.feed(input))
        }

        mutating func step() {
            switch Int.random(in: 0..<7, using: &random) {
            case 0, 1: answerSomething()
            case 2, 3: endSomething()
            case 4:
                if let name = jobs.sorted().randomElement(using: &random) {
                    let offset = Int64.random(in: 0..<1_000, using: &random)
                    feed(.job(name, chance(30) ? .fetched : .progress(DurablePrefix(offset: offset, crc: 0), nil)))
                }
            default:
                harness.now += Int64.random(in: 1..<(faulty ? 4_000_000_000 : 400_000_000), using: &random)
                feed(.tick)
            }
            if opening {
                opening = false
                if faulty, chance(30) {
                    feed(.sessionRefused(.unreachable))
                } else {
                    session += 1
                    (waiting, lastSequence, lastSettled, granted) = ([], 0, 0, [])
                    feed(.sessionOpened(SessionDocument(id: SessionID(session), ttlMilliseconds: 30_000)))
                }
            }
            for sink in harness.machine.sinks {
                if case .probing = sink.health, chance(50) { feed(.sinkProbed(sink.name, .well(freeBytes: nil))) }
            }
        }

        mutating func answerSomething() {
            guard let index = waiting.indices.randomElement(using: &random) else { return }
            let request = waiting.remove(at: index)
            if faulty, chance(25) {
                return feed(
                    .syncFailed(
                        SessionID(session),
                        sequence: request.sequence,
                        chance(20) ? .sessionGone : .unreachable
                    )
                )
            }
            for report in request.reports where ![.progress, .shrunk].contains(report.kind) {
                granted.remove(report.lease)
            }
            var leases: [LeaseDocument] = []
            // A superseded sync is granted nothing.
            if request.sequence == lastSequence, faulty {
                for _ in 0..<min(request.room, Int.random(in: 0..<4, using: &random)) {
                    let kind = LeaseKind.allCases.randomElement(using: &random) ?? .fetch
                    let sink = chance(80) ? "default" : "other"
                    leases.append(lease(nextChunk, epoch: nextChunk, kind: kind, sink: sink))
                    nextChunk += 1
                }
            }
            granted.formUnion(leases.map(\.name))
            let lost = faulty && chance(10) ? Array(request.held.prefix(1)) : []
            for name in lost { granted.remove(name) }
            let asked = faulty && chance(20) ? Array(request.held.suffix(2)) : []
            let answer = SyncResponse(
                lost: lost,
                shrink: asked.map {
                    Shrink(
                        lease: $0, end: Int64.random(in: 0..<9 << 20, using: &random),
                        isUntouched: chance(20) ? true : nil)
                },
                leases: leases,
                ttlMilliseconds: 30_000,
                budgets: chance(50) ? nil : [BudgetShare(name: "fleet", bytesPerSecond: chance(20) ? 0 : 5)]
            )
            feed(.syncAnswered(SessionID(session), sequence: request.sequence, answer))
            if chance(10) { feed(.syncAnswered(SessionID(session), sequence: request.sequence, answer)) }
        }

        mutating func endSomething() {
            guard let name = jobs.sorted().randomElement(using: &random) else { return }
            jobs.remove(name)
            let endings: [JobEnding] = [
                done(1_000), network, .resolved(ResolverAnswer(url: "https://a/")), .released(nil, nil),
                .restart("x", on: .whole), .aborted,
                .sinkTrouble(SinkTrouble(kind: .storageFull, detail: "x"), nil, nil),
                .unsettled(SinkTrouble(kind: .storage, detail: "x")),
            ]
            feed(.job(name, .ended(endings[Int.random(in: 0..<endings.count, using: &random)])))
        }
    }

    @Test(arguments: 0..<200) func everyLeaseIsAccountedForWhateverHappens(seed: Int) {
        var model = Model(seed: UInt64(seed))
        model.feed(.tick)
        for _ in 0..<300 { model.step() }
        model.faulty = false
        for _ in 0..<2_000 where !(model.jobs.isEmpty && model.granted.isEmpty) { model.step() }
        #expect(model.jobs.isEmpty, "seed \(seed)")
        #expect(model.granted.isEmpty, "seed \(seed): a lease was never reported on")
        model.feed(.drain)
        for _ in 0..<200 where !model.isStopped { model.step() }
        #expect(model.isStopped, "seed \(seed)")
    }
}
