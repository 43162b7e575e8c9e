public import MusterCore
public import MusterPostgres

// The closed sets of texts that columns hold: what is none of them is refused where it is read.

extension TaskState: PostgresText {}
extension GroupState: PostgresText {}
extension LeaseKind: PostgresText {}
extension Rung: PostgresText {}
extension DeliveryState: PostgresText {}
extension DeadlineAction: PostgresText {}
extension PrerequisiteCondition: PostgresText {}
extension FailureKind: PostgresText {}
extension AttemptOutcome: PostgresText {}
