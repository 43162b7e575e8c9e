import MusterAPI
import MusterCore
import MusterStore

/// The facts that explain a task, at one moment of the database's clock. `Explanation` draws the conclusions.
struct TaskFacts: Sendable {
    /// The task.
    var task: TaskDocument
    /// What is known of its chunks, its sources and its tries.
    var situation: TaskSituation
    /// Its group.
    var group: String
    /// The sink.
    var sink: String
    /// Whether the whole group is paused.
    var isGroupPaused = false
    /// How many connections the group may have.
    var groupCap: Int32?
    /// The groups that its group still waits for.
    var prerequisites: [String] = []
    /// When its group may run.
    var window = GroupFacts.Window.always
    /// The most bytes per second that its group may have now.
    var bytesPerSecondAllowed: Int64?
    /// Bytes per second of its group lately.
    var groupBytesPerSecond: Int64 = 0
    /// The workers that could do the work.
    var workers: SinkWorkers
}

extension TaskFacts {
    /// The facts as they are stored.
    ///
    /// - Parameters:
    ///   - group: the task's group, for what concerns the whole group, and the trouble of its sink.
    ///   - own: what the coordinator's own process knows.
    init(_ task: TaskRecord, _ situation: TaskSituation, of group: GroupRecord, own: OwnProcess) throws {
        self.init(
            task: try TaskDocument(task), situation: situation, group: group.name, sink: group.sink,
            isGroupPaused: group.isPaused, groupCap: group.maxConnections,
            prerequisites: group.prerequisites.filter { !$0.isSatisfied }.map(\.group),
            window: GroupFacts.Window(group), bytesPerSecondAllowed: group.bytesPerSecondAllowed,
            groupBytesPerSecond: group.bytesPerSecond, workers: SinkWorkers(group, situation.workers, own: own))
    }
}
