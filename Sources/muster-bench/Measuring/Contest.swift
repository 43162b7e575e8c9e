/// A subject that takes turns with others.
struct Contestant: Sendable {
    /// Its name in the report.
    var name: String
    /// Its role in the comparison.
    var role: Row.Role
    /// Does the work once. The number of the turn differs each time, so that leftovers of an earlier turn don't interfere.
    var run: @Sendable (_ turn: Int) async throws -> Sample
}

/// Subjects that are measured in turns, so that changes of the machine affect all of them alike.
struct Contest: Sendable {
    /// The name of the section.
    var name: String
    /// What is measured.
    var title: String
    /// The unit of the figures.
    var unit: String
    /// Which way is better.
    var better: Section.Better
    /// The subjects.
    var contestants: [Contestant]
    /// Further remarks for the report.
    var notes: [String] = []

    /// Runs every subject once in each round; each round begins with another subject. The warm-ups don't count.
    ///
    /// A peer that fails is left out with a note; failures of Muster or of the floor are errors.
    func run(_ bench: Bench) async throws -> Section {
        var samples: [String: [Sample]] = [:]
        var notes = notes
        var failed: Set<String> = []
        for turn in 0..<(bench.warmUps + bench.rounds) {
            let isWarmUp = turn < bench.warmUps
            for place in contestants.indices {
                let contestant = contestants[(place + turn) % contestants.count]
                guard !failed.contains(contestant.name) else { continue }
                do {
                    let sample = try await contestant.run(turn)
                    bench.say(
                        "\(name)\(isWarmUp ? " (warm-up)" : ""): \(contestant.name) \(Figure.text(sample.value)) \(unit)"
                    )
                    if !isWarmUp { samples[contestant.name, default: []].append(sample) }
                } catch  where contestant.role == .peer {
                    failed.insert(contestant.name)
                    notes.append("\(contestant.name) failed and is left out: \(Self.line(error))")
                }
            }
        }
        let rows = contestants.filter { !failed.contains($0.name) }.map {
            Row(subject: $0.name, role: $0.role, samples: samples[$0.name] ?? [])
        }
        return Section(name: name, title: title, unit: unit, better: better, rows: rows, notes: notes)
    }

    private static func line(_ error: any Error) -> String {
        String("\(error)".split(whereSeparator: \.isNewline).joined(separator: " ").prefix(300))
    }
}
