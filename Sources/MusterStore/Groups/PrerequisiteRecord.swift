public import MusterCore
import MusterPostgres

/// A group that another group waits for, as it is stored.
public struct PrerequisiteRecord: Hashable, Sendable {
    /// Its name.
    public let group: String
    /// The condition: how it must end.
    public let on: PrerequisiteCondition
    /// Whether it has met the condition once. This stays true, whatever happens to the group later.
    public var isSatisfied = false
    /// Its observed state.
    public let state: GroupState

    /// The group in a group's row that blocks its chain.
    static func lost(_ row: PostgresRow) throws -> PrerequisiteRecord? {
        guard let name = try row.decode("lost_name", as: String?.self) else { return nil }
        return PrerequisiteRecord(
            group: name, on: try row.decode("lost_condition"), state: try row.decode("lost_state"))
    }

    /// The prerequisites in a group's row, by name.
    static func all(_ row: PostgresRow) throws -> [PrerequisiteRecord] {
        let names: [String] = try row.decode("prerequisite_names")
        let conditions: [PrerequisiteCondition] = try row.decode("prerequisite_conditions")
        let states: [GroupState] = try row.decode("prerequisite_states")
        let satisfied: [Bool] = try row.decode("prerequisites_satisfied")
        return names.indices.map { index in
            PrerequisiteRecord(
                group: names[index], on: conditions[index], isSatisfied: satisfied[index], state: states[index])
        }
    }
}
