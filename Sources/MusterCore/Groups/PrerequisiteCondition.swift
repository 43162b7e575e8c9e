/// How a group must end for those that wait for it to begin.
public enum PrerequisiteCondition: String, Sendable, Hashable, Codable, CaseIterable {
    /// Every one of its tasks has succeeded.
    case succeeded
    /// It has ended, in whatever way.
    case finished

    /// Whether a group in this state lets those begin that wait for it so.
    public func isSatisfied(by state: GroupState) -> Bool {
        switch (self, state) {
        case (.succeeded, .succeeded), (.finished, .succeeded), (.finished, .failed), (.finished, .cancelled): true
        case (.succeeded, .failed), (.succeeded, .cancelled), (_, .open), (_, .sealed): false
        }
    }
}
