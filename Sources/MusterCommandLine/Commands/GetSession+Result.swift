import MusterAPI
import MusterCore

extension GetSession {
    /// How a run ended.
    struct Result: Sendable, Encodable {
        /// The group that was waited for last.
        var group: GroupDocument
        /// How many of its failures were printed while they happened.
        var namedFailures: Int64 = 0
        /// The bytes that came in this run, and its time.
        var gain: Gain?
        /// The failed tasks; not all of them if there are more than 10,000.
        var failures: [TaskDocument]
        /// The tries of the first failed tasks, since no coordinator answers once `get` has ended.
        var explanations: [ExplanationDocument]
        /// How many more files earlier requests of the directory have finished.
        var there = 0
        /// How many existing files the origin said to be unchanged, if it was asked about them.
        var unchanged = 0
        /// Whether every file was there already, so that there was nothing to do.
        var wasComplete: Bool
        /// Files that were changed after they were fetched.
        var changed: [String]
        /// Files that failed now, and are there as an earlier run fetched them. It is not known whether the origin still has the same.
        var unchecked: [String] = []
        /// Files that may be web pages in place of the right files.
        var doubtful: DoubtfulFiles?
        /// Where the files are.
        var directory: String
        /// Why the run ended before its group did.
        var halt: CommandFailure?

        /// The exit code.
        var status: ExitStatus {
            changed.isEmpty ? ExitStatus.result(of: group.state) ?? .failure : .failure
        }

        private enum CodingKeys: String, CodingKey {
            case directory, failures, explanations, there, wasComplete, changed, unchecked, doubtful
        }

        /// The group's document with a few more fields.
        func encode(to encoder: any Encoder) throws {
            try group.encode(to: encoder)
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(directory, forKey: .directory)
            try container.encode(failures.prefix(GroupResult.shownFailures).map { $0 }, forKey: .failures)
            try container.encode(explanations, forKey: .explanations)
            try container.encode(there, forKey: .there)
            try container.encode(wasComplete, forKey: .wasComplete)
            try container.encode(changed, forKey: .changed)
            try container.encode(unchecked, forKey: .unchecked)
            try container.encodeIfPresent(doubtful, forKey: .doubtful)
        }

        /// How the run ended, in a line.
        var summary: String {
            if wasComplete {
                return group.tasks.total == 0 && there == 0
                    ? "nothing to do: the manifest is empty"
                    : "nothing to do: every file is there already, in \(TextWidth.escaped(directory))"
            }
            guard !changed.isEmpty || !unchecked.isEmpty else {
                let more = [(there, "there already"), (unchanged, "unchanged")].filter { $0.0 > 0 }
                return more.reduce(PlainProgress.summary(group, unchanged > 0 ? nil : gain)) {
                    "\($0), \($1.0) \($1.1)"
                }
            }
            func files(_ count: Int, _ one: String, _ many: String) -> [String] {
                count == 0 ? [] : [count == 1 ? "1 file \(one)" : "\(count) files \(many)"]
            }
            // Failures whose files are there are counted apart.
            let failed = group.tasks.failed - Int64(unchecked.count)
            let succeeded = group.tasks.succeeded + Int64(there) - Int64(changed.count)
            let counts = [(failed, "failed"), (succeeded, changed.isEmpty ? "succeeded" : "as fetched")]
            let parts =
                files(changed.count, "was changed since", "were changed since")
                + files(
                    unchecked.count, "is there as fetched before, but could not be checked again",
                    "are there as fetched before, but could not be checked again")
                + counts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
            return "\(group.name): failed: " + parts.joined(separator: ", ")
        }

        /// Lines about what went wrong. Failures are left out if all of them were printed while they happened.
        var troubles: [String] {
            var lines: [String] = []
            if namedFailures < group.tasks.failed {
                lines = failures.prefix(GroupResult.shownFailures).map(PlainProgress.failure)
                let rest = group.tasks.failed - Int64(lines.count)
                if rest > 0 { lines.append("… and \(rest) more") }
            }
            for explanation in explanations { lines += ExplanationText.tries(explanation, most: GetSession.shownTries) }
            lines += changed.map {
                TextWidth.escaped(
                    "changed: \($0) was written to since it was fetched; move it away to have it fetched again, or say --if-exists replace"
                )
            }
            return lines
                + unchecked.prefix(GroupResult.shownFailures).map {
                    TextWidth.escaped("kept: \($0) is there as it was fetched before; it could not be checked again")
                }
        }

        /// Lines with advice.
        var hints: [String] {
            [doubtful?.line].compactMap { $0 } + advice
        }

        private var advice: [String] {
            if wasComplete, group.tasks.total + Int64(there) > 0 {
                return [
                    "whether they have changed at their origin is asked, and what has is replaced, with: --if-exists replace"
                ]
            }
            return group.state == .failed
                ? FailureAdvice.lines(failures, areAll: Int64(failures.count) >= group.tasks.failed) : []
        }
    }
}
