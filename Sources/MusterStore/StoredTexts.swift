public import MusterCore
public import MusterPostgres

// The closed sets of texts that columns hold. Reading any other text is an error.

extension TaskState: PostgresText {}
extension GroupState: PostgresText {}
extension LeaseKind: PostgresText {}
extension Rung: PostgresText {}
extension DeliveryState: PostgresText {}
extension DeadlineAction: PostgresText {}
extension PrerequisiteCondition: PostgresText {}
extension FailureKind: PostgresText {}
extension AttemptOutcome: PostgresText {}
