import Synchronization

/// A value that tests and servers change, and that others wait on.
///
/// Waiting is by signal: every change checks the conditions of all waiters, and wakes those whose condition holds.
public final class Observed<Value: Sendable>: Sendable {
    private struct Waiter {
        let condition: @Sendable (Value) -> Bool
        let continuation: CheckedContinuation<Value, any Error>
    }

    private struct Storage {
        var value: Value
        var waiters: [Int: Waiter] = [:]
        var nextWaiter = 0
        /// Waiters that were cancelled before they had begun to wait.
        var cancelled: Set<Int> = []
    }

    private let storage: Mutex<Storage>

    /// Starts with a value.
    public init(_ value: Value) {
        self.storage = Mutex(Storage(value: value))
    }

    /// The value as it is now.
    public var value: Value { storage.withLock { $0.value } }

    /// Changes the value, and wakes the waiters whose condition holds now.
    @discardableResult
    public func update<Result: Sendable>(_ change: @Sendable (inout Value) -> Result) -> Result {
        let (result, value, woken) = storage.withLock { storage in
            let result = change(&storage.value)
            let value = storage.value
            let ready = storage.waiters.filter { $0.value.condition(value) }
            for number in ready.keys { storage.waiters[number] = nil }
            return (result, value, ready.values.map(\.continuation))
        }
        for continuation in woken { continuation.resume(returning: value) }
        return result
    }

    /// Waits until the condition holds, and returns the value for which it did.
    ///
    /// - Parameters:
    ///   - what: The name of the condition in the error.
    ///   - limit: After which ``TimedOut`` is thrown; nil waits until the task is cancelled.
    ///   - details: What the error shows of the value as it then is.
    ///   - condition: Looked at now and after every change, under a lock: it must not touch this object.
    @discardableResult
    public func wait(
        for what: String,
        limit: Duration? = TimedOut.defaultLimit,
        details: @Sendable (Value) -> String = { "\($0)" },
        until condition: @escaping @Sendable (Value) -> Bool
    ) async throws -> Value {
        guard let limit else { return try await suspend(until: condition) }
        let found = try await withThrowingTaskGroup(of: Value?.self) { group in
            group.addTask { try await self.suspend(until: condition) }
            group.addTask {
                try await Task.sleep(for: limit)
                return nil
            }
            defer { group.cancelAll() }
            return try await group.next() ?? nil
        }
        guard let found else { throw TimedOut(what: what, limit: limit, details: details(value)) }
        return found
    }

    private func suspend(until condition: @escaping @Sendable (Value) -> Bool) async throws -> Value {
        let number = storage.withLock { storage in
            storage.nextWaiter += 1
            return storage.nextWaiter
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let outcome: Result<Value, any Error>? = storage.withLock { storage in
                    if storage.cancelled.remove(number) != nil { return .failure(CancellationError()) }
                    if condition(storage.value) { return .success(storage.value) }
                    storage.waiters[number] = Waiter(condition: condition, continuation: continuation)
                    return nil
                }
                if let outcome { continuation.resume(with: outcome) }
            }
        } onCancel: {
            let waiter = storage.withLock { storage in
                let waiter = storage.waiters.removeValue(forKey: number)
                if waiter == nil { storage.cancelled.insert(number) }
                return waiter
            }
            waiter?.continuation.resume(throwing: CancellationError())
        }
    }
}
