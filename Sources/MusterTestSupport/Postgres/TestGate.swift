/// Limits how many tests use the shared server at once, so that their connections fit, and that no test waits for its
/// turn in the middle of something that has a deadline.
public actor TestGate {
    /// The gate of this process.
    public static let shared = TestGate(places: 4)

    private var free: Int
    private var waiting: [CheckedContinuation<Void, Never>] = []

    /// Makes a gate with `places` places.
    public init(places: Int) {
        free = places
    }

    /// Runs `body` as soon as there is a place. A test that holds a place must not ask for another.
    public nonisolated func pass<Value: Sendable>(_ body: @Sendable () async throws -> Value) async throws -> Value {
        await enter()
        do {
            let value = try await body()
            await leave()
            return value
        } catch {
            await leave()
            throw error
        }
    }

    private func enter() async {
        if free > 0 {
            free -= 1
        } else {
            await withCheckedContinuation { waiting.append($0) }
        }
    }

    private func leave() {
        if waiting.isEmpty {
            free += 1
        } else {
            waiting.removeFirst().resume()
        }
    }
}
