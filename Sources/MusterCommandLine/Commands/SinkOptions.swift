import ArgumentParser
import MusterCore
import MusterWorker

/// The sinks that workers are started with.
struct SinkOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A sink and its directory; may be repeated. (MUSTER_SINK, separated by commas)",
            valueName: "name=dir"
        )
    )
    var sink: [String] = []

    @Option(
        help: ArgumentHelp(
            """
            Take the directory of this sink though its files are in another one, which is gone for good; may be \
            repeated. Needed once.
            """,
            valueName: "sink"
        )
    )
    var newDirectory: [String] = []

    var given: [SettingName: [String]] { Given.lists([.sink: sink, .newDirectory: newDirectory]) }
}

extension Settings {
    /// The sinks with their directories; a relative directory starts from `base`.
    ///
    /// - Parameter fallback: the directory of the default sink if no sink is named.
    func sinks(base: String, fallback: String? = nil) throws(CommandFailure) -> [SinkArgument] {
        var sinks = try SinkArgument.list(texts(.sink), base: base)
        if sinks.isEmpty, let fallback { sinks = [SinkArgument(name: defaultSinkName, directory: fallback)] }
        for name in texts(.newDirectory) {
            guard let index = sinks.firstIndex(where: { $0.name == name }) else {
                throw .usage("--new-directory \(name): there is no such sink here")
            }
            sinks[index].identity = .replaced
        }
        return sinks
    }
}
