import ArgumentParser

/// The program: benchmarks of Muster and of other programs, in turns on the same files.
@main
struct MusterBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "muster-bench",
        abstract: "Measures Muster beside what else does the same work, in turns, and beside the least that it costs.",
        discussion: """
            Everything is started for the run and ended with it: PostgreSQL, nginx, coordinators, workers, other programs. \
            All of it listens on this machine alone. Compare figures of one run only, by their ratios: machines drift.

            Examples:
              muster-bench small
              muster-bench large --directory /dev/shm --rounds 5
              muster-bench all --json bench.json --svg bench.svg
            """,
        subcommands: [
            LargeCommand.self, SmallCommand.self, ControlPlaneCommand.self, GroupsCommand.self, BacklogCommand.self,
            ImportCommand.self, RecoveryCommand.self, ScalingCommand.self, LatencyCommand.self, DistanceCommand.self,
            SessionsCommand.self, SoakCommand.self, AllCommand.self,
            ShowCommand.self, BareTransfersCommand.self,
        ]
    )
}
