import MusterCurl
import Synchronization
import Testing

/// Credentials that an origin demands by a challenge (RFC 9110 §11, RFC 7616).
@Suite(.timeLimit(.minutes(1)))
struct AuthenticationTests {
    private static let found = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

    private static func challenge(_ challenge: String) -> String {
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: \(challenge)\r\nContent-Length: 3\r\n\r\nno\n"
    }

    private static func digest(_ nonce: String, _ more: String = "") -> String {
        challenge(#"Digest realm="shelf", qop="auth", algorithm=SHA-256, nonce="\#(nonce)"\#(more)"#)
    }

    /// Serves the answers in order, repeating the last, and returns each request's Authorization field (empty if absent).
    private func play(_ answers: [String]) async throws -> (TransferOutcome, Recorder.Record, shown: [String]) {
        let heads = Mutex<[String]>([])
        return try await withServer { connection, _ in
            while true {
                let head = connection.readHead()
                if head.isEmpty { return }
                let count = heads.withLock { heads in
                    heads.append(head)
                    return heads.count
                }
                connection.send(answers[min(count, answers.count) - 1])
            }
        } _: { loop, server in
            var request = TransferRequest(url: server.url("/file"))
            request.credentials = "me:secret word"
            request.authentication = .onChallenge
            let recorder = Recorder(onHead: { $0.status == 200 ? .accept(limit: nil) : .refuse })
            let (outcome, record) = try await fetch(loop, request, recorder)
            #expect(record.heads.count == 1)
            let shown = heads.withLock { heads in
                heads.map { head in
                    let line = head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("authorization: ") }
                    return line.map { String($0.dropFirst("authorization: ".count)) } ?? ""
                }
            }
            return (outcome, record, shown)
        }
    }

    @Test func challengeIsAnsweredAndItsHeadIsNotTheFinalOne() async throws {
        let (outcome, record, shown) = try await play([Self.digest("n1"), Self.found])
        #expect(outcome.end == .framed && record.head?.status == 200, "\(outcome)")
        #expect(record.body == Array("hello".utf8))
        #expect(shown.count == 2 && shown[0].isEmpty && shown[1].hasPrefix("Digest "), "\(shown)")
        #expect(shown.last?.contains(#"nonce="n1""#) == true && shown.last?.contains("secret") == false, "\(shown)")
    }

    @Test func staleNonceIsReplaced() async throws {
        let (outcome, record, shown) = try await play([
            Self.digest("n1"), Self.digest("n2", ", stale=true"), Self.found,
        ])
        #expect(outcome.end == .framed && record.head?.status == 200, "\(outcome)")
        #expect(shown.count == 3 && shown.last?.contains(#"nonce="n2""#) == true, "\(shown)")
    }

    @Test(arguments: [
        ([digest("n1"), digest("n2")], 2), ([digest("n1"), digest("n2", ", stale=true")], 3),
        ([challenge(#"Digest realm="shelf", nonce="n1", algorithm=UNHEARD"#)], 1), ([challenge("Negotiate")], 1),
        ([challenge(#"Basic realm="shelf""#)], 2),
    ])
    func challengeThatCannotBeMetIsTheFinalAnswer(answers: [String], requests: Int) async throws {
        let (outcome, record, shown) = try await play(answers)
        guard case .refused = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(record.head?.status == 401)
        #expect(record.body.isEmpty)
        #expect(shown.count <= requests, "\(shown)")
    }

    @Test func basicCredentialsAreSentOnlyAfterAChallenge() async throws {
        let (outcome, record, shown) = try await play([Self.challenge(#"Basic realm="shelf""#), Self.found])
        #expect(outcome.end == .framed && record.head?.status == 200, "\(outcome)")
        #expect(shown == ["", "Basic bWU6c2VjcmV0IHdvcmQ="])
    }
}
