import MusterPostgres
import MusterSystem
import Testing

@Suite struct ListenerTests {
    let configuration: PostgresConfiguration
    let connection: PostgresConnection

    init() async throws {
        configuration = try await TestCluster.shared().schema()
        connection = try await PostgresConnection.open(configuration)
    }

    @Test func notificationsArriveInOrder() async throws {
        let channel = "a \"channel\" \(configuration.searchPath)"
        let events = PostgresListener(configuration, channels: [channel]).makeAsyncIterator()
        var iterator = events
        #expect(await iterator.next() == .listening)
        for number in 0..<100 {
            try await connection.notify(channel: channel, payload: "\(number)")
        }
        for number in 0..<100 {
            guard case .notification(let notification)? = await iterator.next() else {
                Issue.record("no notification")
                return
            }
            #expect(notification.channel == channel)
            #expect(notification.payload == "\(number)")
        }
    }

    @Test func listenerSurvivesItsTermination() async throws {
        var configuration = configuration
        configuration.applicationName = "listener \(configuration.searchPath)"
        let channel = "channel \(configuration.searchPath)"
        let backoff = Backoff(first: .milliseconds(1), longest: .milliseconds(10), jitter: 0.5)
        var events = PostgresListener(configuration, channels: [channel], backoff: backoff).makeAsyncIterator()
        #expect(await events.next() == .listening)
        for round in 0..<3 {
            try await connection.query(
                """
                SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
                WHERE application_name = \(configuration.applicationName)
                """
            )
            #expect(await events.next() == .reconnected)
            try await connection.notify(channel: channel, payload: "\(round)")
            guard case .notification(let notification)? = await events.next() else {
                Issue.record("no notification")
                return
            }
            #expect(notification.payload == "\(round)")
        }
    }

    @Test func silentListenerChecksItsServerAndGoesOn() async throws {
        let channel = "silence \(configuration.searchPath)"
        var configuration = configuration
        configuration.applicationName = channel
        let listener = PostgresListener(configuration, channels: [channel], checkInterval: .milliseconds(1))
        async let heard: [PostgresListenerEvent] = {
            var events: [PostgresListenerEvent] = []
            for await event in listener {
                events.append(event)
                if case .notification = event { break }
            }
            return events
        }()
        // The check's query shows in the server's view of sessions.
        while try await connection.query(
            "SELECT 1 FROM pg_stat_activity WHERE application_name = \(channel) AND query = 'SELECT 1'"
        ).isEmpty { await Task.yield() }
        try await connection.notify(channel: channel)
        #expect(await heard.count == 2)
    }

    @Test func cancelledListenerEnds() async throws {
        let (started, signal) = AsyncStream.makeStream(of: Void.self)
        let task = Task { [configuration] in
            for await event in PostgresListener(configuration, channels: ["nothing"]) where event == .listening {
                signal.finish()
            }
            return true
        }
        for await _ in started {}
        task.cancel()
        #expect(await task.value)
    }
}
