import FoundationEssentials
import MusterAPI
import Testing

struct ProblemTests {
    /// Clients' programs decide by the codes and statuses.
    @Test func everyCodeKeepsItsNameAndItsStatus() {
        let table: [String: Int] = [
            "invalidRequest": 400, "unauthorized": 401, "forbidden": 403, "groupNotFound": 404, "taskNotFound": 404,
            "workerNotFound": 404, "notFound": 404, "methodNotAllowed": 405, "groupExists": 409, "groupSealed": 409,
            "groupFinished": 409, "destinationTaken": 409, "conflict": 409, "sessionNotFound": 404, "tooLarge": 413,
            "internal": 500, "databaseUnavailable": 503, "stopping": 503, "subscriptionNotFound": 404,
            "deliveryNotFound": 404, "consumerNotFound": 404, "subscriptionExists": 409, "eventsGone": 410,
            "otherLog": 409, "busy": 503,
            "foreignHost": 421, "foreignOrigin": 403, "unsupportedMediaType": 415, "expectationFailed": 417,
        ]
        let real = Dictionary(uniqueKeysWithValues: Problem.Code.allCases.map { ($0.rawValue, $0.status) })
        #expect(real == table)
        #expect(Set(Problem.Code.allCases.map(\.title)).count == Problem.Code.allCases.count)
    }

    @Test func problemIsADocumentOfRFC9457() throws {
        let problem = Problem(.invalidRequest, "not a URL", pointer: "/urls/0", line: 7)
        let json =
            #"{"code":"invalidRequest","detail":"not a URL","line":7,"pointer":"/urls/0","status":400,"#
            + #""title":"The request is not valid","type":"urn:muster:problem:invalidRequest"}"#
        #expect(try jsonText(problem) == json)
        #expect(try document(Problem.self, json) == problem)
        let plain = Problem(.stopping, "later")
        #expect(try document(Problem.self, jsonText(plain)) == plain)
        #expect(try !jsonText(plain).contains("pointer"))
    }

    @Test(
        arguments: [
            (Problem(.invalidRequest, "d", pointer: "/a", line: 7), "The request is not valid: line 7 /a: d"),
            (Problem(.invalidRequest, "d", line: 7), "The request is not valid: line 7: d"),
            (Problem(.groupExists, "d", pointer: "/name"), "A group of this name exists: /name: d"),
            (Problem(.stopping, "d"), "The coordinator is stopping: d"),
        ])
    func problemIsOneLineForPeople(problem: Problem, line: String) {
        #expect(problem.description == line)
    }
}
