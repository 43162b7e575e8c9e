/// How a group must end before the groups that wait for it may begin.
public enum PrerequisiteCondition: String, Sendable, Hashable, Codable, CaseIterable {
    /// Every one of its tasks has succeeded.
    case succeeded
    /// It has ended, in any state.
    case finished

    /// Whether a group in this state lets the groups begin that wait for it under this condition.
    public func isSatisfied(by state: GroupState) -> Bool {
        switch (self, state) {
        case (.succeeded, .succeeded), (.finished, .succeeded), (.finished, .failed), (.finished, .cancelled): true
        case (.succeeded, .failed), (.succeeded, .cancelled), (_, .open), (_, .sealed): false
        }
    }
}

/// A group that another group is to wait for.
public struct GroupPrerequisite: Hashable, Sendable, Codable {
    /// Its name.
    public var group: String
    /// How that group has to end; `succeeded` when absent.
    public var on: PrerequisiteCondition

    private enum CodingKeys: String, CodingKey, CaseIterable { case group, on }

    /// A group to wait for.
    public init(group: String, on: PrerequisiteCondition = .succeeded) {
        self.group = group
        self.on = on
    }

    /// Reads a prerequisite and refuses unknown fields.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
        group = try container.decode(String.self, forKey: .group)
        on = try container.decodeIfPresent(PrerequisiteCondition.self, forKey: .on) ?? .succeeded
    }
}
