import MusterCore

/// What stood at a task's path before anything was fetched for it, under the rule `verify`.
struct StandingFile: Sendable, Hashable {
    /// What to do once a response has told what the content is.
    enum Judgement: Sendable, Hashable {
        /// Take no body: the file is the content or it is not, and examining it shows which.
        case examine([ContentDigest], lastModified: Int64?)
        /// Only the bytes can tell: fetch them. They are compared when the file is put in place, and the standing file is left alone unless it is the same.
        case fetch
    }

    /// Its size in bytes.
    var size: Int64
    /// When it was changed last, in seconds since 1970.
    var modificationTime: Int64

    /// Judges the file by what a response says of the content.
    func judge(_ content: Representation) -> Judgement {
        let stated = ExpectedDigests(given: [:], stated: content.digests).stated
        let lastModified = content.lastModified.flatMap { HTTPDate($0)?.secondsSince1970 }
        let isSure = content.size.map { $0 != size } ?? false || !stated.isEmpty
        let isSameByDate = content.size != nil && content.size == size && lastModified == modificationTime
        return isSure || isSameByDate ? .examine(stated, lastModified: lastModified) : .fetch
    }
}
