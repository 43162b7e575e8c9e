import MusterCore

extension Representation {
    /// What is known once a response of the same content has been accepted.
    func updated(by response: Representation) -> Representation {
        // A date that was once old enough stays so.
        let isSameDate = response.lastModified == nil || response.lastModified == lastModified
        return Representation(
            size: response.size ?? size,
            etag: response.etag ?? etag,
            lastModified: response.lastModified ?? lastModified,
            isDateStrong: isSameDate && isDateStrong == true ? true : response.isDateStrong,
            digests: (digests ?? [:]).isEmpty ? response.digests : digests?.merging(response.digests ?? [:]) { $1 }
        )
    }
}
