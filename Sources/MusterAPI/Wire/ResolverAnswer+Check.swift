public import MusterCore

extension ResolverAnswer {
    /// The fresh URL, if the answer can be used. Throws if the answer is impossible; the reason contains no value of its headers.
    public func checked() throws(InputRefusal) -> SourceURL {
        let checked: SourceURL
        do throws(SourceURL.Refusal) {
            checked = try SourceURL(validatingFile: url)
        } catch {
            throw InputRefusal(pointer: "/url", reason: error.description)
        }
        let headers = try TaskSpecification.headers(headers ?? [:])
        try HeaderNames.check(headers.keys, at: "/headers")
        return checked
    }
}
