public import MusterCore

extension ResolverAnswer {
    /// The fresh URL, if the answer can be used; throws what is impossible about it, without a value of its headers.
    public func checked() throws(InputRefusal) -> SourceURL {
        let checked: SourceURL
        do throws(SourceURL.Refusal) {
            checked = try SourceURL(validating: url)
        } catch {
            throw InputRefusal(pointer: "/url", reason: error.description)
        }
        let headers = try TaskSpecification.headers(headers ?? [:])
        try HeaderNames.check(headers.keys, at: "/headers")
        return checked
    }
}
