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
