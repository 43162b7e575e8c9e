/// The version of the program, which workers tell the coordinator and `--version` prints.
enum MusterVersion {
    /// The version of this build.
    static let current = "0.1.0"
}
