import Logging
import Testing

@testable import MusterWorker

@Suite struct WorkerTests {
    private let good = WorkerConfiguration(
        servers: ["http://127.0.0.1:1"],
        name: "w",
        sinks: [SinkConfiguration(name: "default", path: "/nowhere")],
        version: "0"
    )

    private func refusal(_ change: (inout WorkerConfiguration) -> Void) -> WorkerRefusal? {
        var configuration = good
        change(&configuration)
        do throws(WorkerRefusal) {
            _ = try Worker(configuration: configuration, logger: Logger(label: "test"))
            return nil
        } catch {
            return error
        }
    }

    @Test func impossibleConfigurationsAreRefused() {
        #expect(refusal { _ in } == nil)
        #expect(refusal { $0.servers = [] } == .noServer)
        #expect(refusal { $0.sinks = [] } == .noSink)
        #expect(refusal { $0.sinks.append($0.sinks[0]) } == .duplicateSink("default"))
        #expect(refusal { $0.sinks[0].name = "a b" } == .badName("a b"))
        #expect(refusal { $0.name = "" } == .badName(""))
        #expect(refusal { $0.slots = 0 } == .badSlots(0))
        #expect(refusal { $0.bytesPerSecond = 0 } == .badRate(0))
        #expect(refusal { $0.sinks = (0..<65).map { SinkConfiguration(name: "s\($0)", path: "/") } } == .tooManySinks)
    }
}
