/// Makes a plan whose history fails shorter, by leaving out what it does not need to fail.
enum Shrinker {
    /// The shortest plan that was found, and what is wrong with its history; `nil` if the plan's history does not fail.
    ///
    /// - Parameter run: runs a history, and returns what is wrong with it.
    static func shrink(
        _ plan: Plan, _ run: (Plan) -> [String] = { SimulatedHistory($0).run() }
    ) -> (plan: Plan, problems: [String])? {
        let problems = run(plan)
        guard !problems.isEmpty else { return nil }
        var shortest = plan
        var index = shortest.faults.count - 1
        while index >= 0 {
            var shorter = shortest
            shorter.faults.remove(at: index)
            if !run(shorter).isEmpty { shortest = shorter }
            index -= 1
        }
        // A trace ends with the short history.
        return (shortest, shortest.faults.count == plan.faults.count ? problems : run(shortest))
    }

    /// What a test prints of a failure.
    static func report(_ plan: Plan, _ problems: [String]) -> String {
        let short = shrink(plan)
        let steps = (short?.plan ?? plan).faults.map { "  \($0)" }.joined(separator: "\n")
        return """
            MUSTER_SIMULATION_THEME=\(plan.theme) MUSTER_SIMULATION_SEED=\(plan.seed): \(problems.joined(separator: "; "))
            shortened to
            \(steps)
              \(short?.problems.joined(separator: "; ") ?? "nothing: the history does not fail again")
            """
    }
}
