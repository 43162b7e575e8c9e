/// The version of the program, which workers tell the coordinator and `--version` prints.
enum MusterVersion {
    /// The version of this build.
    static let current = "0.1.0"

    private struct Document: Encodable {
        let version = current
    }

    /// Prints the version, and returns the exit code.
    static func show(isJSON: Bool) -> Int32 {
        let console = Console(json: isJSON)
        do {
            try isJSON ? console.document(Document()) : console.line(current)
        } catch {
            console.remark("Error: \(error)")
        }
        return (console.hasLostLines ? ExitStatus.failure : .success).rawValue
    }
}
