import MusterCore
import MusterCurl

extension ResponseFacts {
    /// The facts of a head that libcurl gave, which is the final one.
    init(_ head: ResponseHead) {
        self.init(
            status: head.status,
            headers: head.headers.fields.map { (name: $0.name, value: $0.value) },
            isHTTP: head.version != .notHTTP,
            isRedirected: head.redirectCount > 0
        )
    }
}
