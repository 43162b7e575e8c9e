import MusterTestSupport

/// What a history is made of: its files, its tasks, and what happens to it. All of it follows from the seed.
struct Plan {
    /// What may happen in a history. A history with few kinds of faults can be judged more strictly.
    enum Theme: CaseIterable {
        /// Nothing fails.
        case calm
        /// Workers die.
        case deaths
        /// One origin and one group are in trouble; others are not (I14, I19).
        case trouble
        /// Workers are stopped in the middle of calls, until others do their work, while clients cancel and remove tasks (F2, F17).
        case sleepers
        /// Anything.
        case storm
    }

    /// A task to add.
    struct Task {
        let group: String
        let key: String
        let path: String
        /// The origin and the file there.
        let origin: Int
        let file: Int
    }

    /// The workers of the installation; one more is of another installation on the same sink.
    static let workers = 3
    static let coordinators = 2
    /// The time in which faults happen, in milliseconds.
    static let faultTime: Int64 = 30_000

    let seed: UInt64
    let theme: Theme
    var sabotage: Sabotage?
    var tasks: [Task] = []
    /// Tasks of another installation on the same sink, which no client changes (I18).
    var strangers: [Task] = []
    var files: [SimulatedOrigin.File] = []
    var faults: [Fault] = []
    private var random: SeededGenerator

    /// The plan of a seed.
    init(seed: UInt64, theme: Theme? = nil) {
        self.seed = seed
        random = SeededGenerator(seed: seed ^ 0x5eed)
        let drawn = Theme.allCases.randomElement(using: &random) ?? .storm
        self.theme = theme ?? drawn
        for index in 0..<8 {
            files.append(
                .init(
                    seed: random.next(),
                    size: index == 0 && self.theme != .calm && self.theme != .deaths ? 0 : Int(number(in: 1...30_000)),
                    validator: validator()))
        }
        for index in 0..<10 {
            let group = index % 2 == 0 ? "g1" : "g2"
            // Some tasks share a path.
            let path = index >= 6 ? "shared/\(index % 2)" : "\(group)/\(index)"
            let file = index >= 6 ? Int(number(in: 6...7)) : index
            tasks.append(.init(group: group, key: "t\(index)", path: path, origin: index % 2, file: file))
        }
        if self.theme == .sleepers || self.theme == .storm {
            for path in ["theirs/0", "theirs/1", "shared/0"] {
                let file = Int(number(in: 1...7))
                strangers.append(.init(group: "theirs", key: path, path: path, origin: 0, file: file))
                faults.append(Fault(at: number(in: 0...20_000), kind: .addStranger(strangers.count - 1)))
            }
        }
        // Where anything may fail at any time, there is work at any time.
        let isSpread = self.theme == .sleepers || self.theme == .storm
        for index in 0..<6 {
            faults.append(Fault(at: isSpread ? number(in: 0...20_000) : 0, kind: .add(index)))
        }
        for index in 6..<10 { faults.append(Fault(at: number(in: 0...12_000), kind: .add(index))) }
        draw()
        faults.sort { $0.at < $1.at }
    }

    private mutating func number(in range: ClosedRange<Int64>) -> Int64 { Int64.random(in: range, using: &random) }

    /// Only files with a strong validator are never fetched twice (range contract, row 12).
    private mutating func validator() -> SimulatedOrigin.Validator {
        switch theme {
        case .calm, .deaths: .strong
        case .trouble, .sleepers, .storm: SimulatedOrigin.Validator.allCases.randomElement(using: &random) ?? .strong
        }
    }

    private mutating func draw() {
        switch theme {
        case .calm: break
        case .deaths:
            for _ in 0..<number(in: 1...4) {
                faults.append(Fault(at: number(in: 100...8_000), kind: death()))
            }
        case .trouble:
            for _ in 0..<number(in: 1...4) {
                let (at, time) = (number(in: 0...10_000), number(in: 1_000...60_000))
                faults.append(
                    Fault(at: at, kind: number(in: 0...2) == 0 ? .lock("g1", time: time) : .mood(0, mood(), time: time))
                )
            }
        case .sleepers:
            for _ in 0..<number(in: 3...10) {
                let at = number(in: 0...20_000)
                let stop = ProcessDisk.CallFault.stop(number(in: 11_000...25_000))
                faults.append(Fault(at: at, kind: .call(worker(), after: number(in: 0...30), stop)))
                // Its work is taken away meanwhile.
                guard number(in: 0...1) == 0 else { continue }
                faults.append(Fault(at: at + number(in: 100...8_000), kind: verb()))
            }
            // Leases are taken away and granted anew before their holders hear of it: reports under old epochs meet new leases. This happens soon after a
            // file was added, while it is being fetched.
            for (task, added) in adds where number(in: 0...2) == 0 {
                let at = added + number(in: 20...400)
                faults.append(Fault(at: at, kind: .verb(.pause, task.group, [task.key])))
                faults.append(Fault(at: at + number(in: 1...40), kind: .verb(.resume, task.group, [task.key])))
            }
            // What a worker writes when it wakes up differs from what others have written since.
            for index in 0..<8 where number(in: 0...1) == 0 {
                faults.append(Fault(at: number(in: 0...25_000), kind: .changeFile(index)))
            }
        case .storm:
            for _ in 0..<number(in: 2...10) {
                let kind = any()
                faults.append(Fault(at: number(in: 0...Self.faultTime), kind: kind))
            }
        }
    }

    /// The tasks of the installation, and when they are added.
    private var adds: [(task: Task, at: Int64)] {
        faults.compactMap { fault in if case .add(let index) = fault.kind { (tasks[index], fault.at) } else { nil } }
    }

    private mutating func worker() -> Int { Int(number(in: 0...Int64(Self.workers) - 1)) }
    private mutating func coordinator() -> Int { Int(number(in: 0...Int64(Self.coordinators) - 1)) }

    private mutating func death() -> Fault.Kind {
        let away = number(in: 100...15_000)
        guard number(in: 0...1) == 0 else { return .killWorker(worker(), away: away) }
        return .call(worker(), after: number(in: 0...60), .death)
    }

    private mutating func mood() -> SimulatedOrigin.Mood {
        switch number(in: 0...4) {
        case 0: .busy(nil)
        case 1: .busy(Int(number(in: 1...5)))
        case 2: .resetting
        case 3: .truncating
        default: .silent
        }
    }

    private mutating func any() -> Fault.Kind {
        let time = number(in: 500...25_000)
        switch number(in: 0...19) {
        case 0, 1: return death()
        case 2: return .stopWorker(worker(), time: time)
        case 3, 4: return .call(worker(), after: number(in: 0...60), .stop(time))
        case 5: return .call(worker(), after: number(in: 0...60), .shortWrite)
        case 6: return .call(worker(), after: number(in: 0...60), .failure(5))
        case 7: return .killCoordinator(coordinator(), away: time / 2)
        case 8: return .stopCoordinator(coordinator(), time: time)
        case 9: return .cut(fromWorker: number(in: 0...1) == 0, worker(), coordinator(), time: time)
        case 10: return .disturb(losses: number(in: 0...300), repetitions: number(in: 0...300), time: time)
        case 11: return .weather(coordinator(), weather(), time: time)
        case 12: return .lock(number(in: 0...1) == 0 ? "g1" : "g2", time: time / 2)
        case 13: return .mood(Int(number(in: 0...1)), mood(), time: time)
        case 14: return .changeFile(Int(number(in: 0...7)))
        case 15: return .full(left: number(in: 0...20_000), time: time)
        case 16: return number(in: 0...1) == 0 ? .readOnly(time: time) : .failSyncs(Int(number(in: 1...3)))
        case 17: return .losePower(away: number(in: 100...3_000))
        case 18: return .descriptors(worker(), limit: Int(number(in: 4...20)), time: time)
        default: return verb()
        }
    }

    private mutating func weather() -> SimulatedStore.Weather {
        SimulatedStore.Weather(
            unreachable: number(in: 0...300), unknown: number(in: 0...300), cancelled: number(in: 0...30))
    }

    private mutating func verb() -> Fault.Kind {
        let group = number(in: 0...1) == 0 ? "g1" : "g2"
        let keys = tasks.filter { $0.group == group }.map(\.key).filter { _ in number(in: 0...2) == 0 }
        return .verb(Fault.Verb.allCases.randomElement(using: &random) ?? .cancel, group, keys)
    }
}
