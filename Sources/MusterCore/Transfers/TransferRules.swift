/// Which differences of validators mean that the content changed (range contract, rows 6 and 11).
public enum ValidatorRule: String, Sendable, Hashable, Codable, CaseIterable {
    /// Any difference of ETag, Last-Modified or size.
    case strict
    /// Only sizes count, since each node of the origin states its own ETags. Needs an expected digest, which detects mixed contents at the
    /// end.
    case sizeAndDigest
}

/// What happens to a task whose destination already holds a file that Muster did not put there.
public enum ExistingFileRule: String, Sendable, Hashable, Codable, CaseIterable {
    /// The file counts if its digest, or else its size and modification time, are those of the content. Otherwise the
    /// task fails.
    case verify
    /// The task fails.
    case fail
    /// The file is replaced once the new one is whole.
    case replace
    /// The new file gets the first free name `name (2).ext`, `name (3).ext` ….
    case rename
}

/// Where the last segment of a task's path comes from (range contract, row 34).
public enum NameSource: String, Sendable, Hashable, Codable, CaseIterable {
    /// From the caller.
    case given
    /// From the origin: Content-Disposition, or else the last segment of the URL that answered.
    case suggested
}
