import FoundationEssentials
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

/// An independent check of what receivers get: PyPI's `standardwebhooks` and `cloudevents`.
enum WebhookVerifier {
    /// One line of what the verifier reads.
    static func line(_ delivery: WebhookReceiver.Delivery, secret: String) throws -> String {
        let headers = Dictionary(delivery.headers.map { ($0.name, $0.value) }, uniquingKeysWith: { $1 })
        let fields = ["secret": JSONValue.string(secret), "body": .string(delivery.body)]
        let value = JSONValue.object(
            fields.merging(["headers": .object(headers.mapValues { .string($0) })]) { $1 })
        return String(decoding: try JSONEncoder().encode(value), as: UTF8.self)
    }

    /// The verifier's answer to each line.
    static func run(_ lines: [String], by python: FilePath) async throws -> [String] {
        let process = try await TestProcess.start(
            python, arguments: ["-c", verifier], input: .text(lines.joined(separator: "\n") + "\n"))
        #expect(try await process.waitForExit() == .exited(0), "\(process.standardError)")
        return process.standardOutput.split(separator: "\n").map(String.init)
    }

    /// Checks every delivery of its input, and that the same with another body, or of an hour ago, is refused.
    private static let verifier = """
        import json, sys
        from standardwebhooks import Webhook, WebhookVerificationError
        from cloudevents.core.bindings.http import HTTPMessage, from_structured_event

        def refuses(webhook, body, headers):
            try:
                webhook.verify(body, headers)
                return False
            except WebhookVerificationError:
                return True

        for line in sys.stdin:
            given = json.loads(line)
            webhook, headers, body = Webhook(given["secret"]), given["headers"], given["body"]
            data = webhook.verify(body, headers)
            event = from_structured_event(HTTPMessage(headers=headers, body=body.encode()))
            assert event.get_specversion() == "1.0" and event.get_id() == headers["webhook-id"], event
            assert event.get_type() == data["type"] and event.get_source() == "/muster", event
            assert event.get_subject() == "groups/" + event.get_data()["group"], event
            assert event.get_time().tzinfo is not None, event
            assert event.get_datacontenttype() == "application/json", event
            assert int(event.get_extension("sequence")) > 0, event
            forged = refuses(webhook, body.replace("muster", "mustar", 1), headers)
            hour = str(int(headers["webhook-timestamp"]) - 3600)
            late = refuses(webhook, body, {**headers, "webhook-timestamp": hour})
            print("verified", event.get_id() + ";", "forged", ("refused" if forged else "accepted") + ";",
                  "late", "refused" if late else "accepted")
        """
}
