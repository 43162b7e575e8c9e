public import MusterCore
import MusterPostgres

/// A group that another one waits for, as it is stored.
public struct PrerequisiteRecord: Hashable, Sendable {
    /// Its name.
    public let group: String
    /// How it must end.
    public let on: PrerequisiteCondition
    /// Whether it has ended so once; that stays, whatever becomes of it later.
    public let isSatisfied: Bool
    /// What is observed of it now.
    public let state: GroupState

    /// Those of a group's row, by name.
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
