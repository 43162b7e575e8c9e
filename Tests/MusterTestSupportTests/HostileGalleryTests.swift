import MusterTestSupport
import SystemPackage
import Testing

@Suite(.enabled(if: Curl.isInstalled)) struct HostileGalleryTests {
    /// The outcome of a fetch by curl, given one URL and no more than one request beside redirects.
    private func fetch(
        _ exhibit: HostileGallery.Exhibit, _ gallery: HostileGallery
    ) async throws
        -> HostileGallery.Outcome
    {
        let prior = gallery.transport == .h2c ? ["--http2-prior-knowledge"] : []
        let answer = try await Curl.get(
            exhibit.url,
            arguments: prior + [
                "-f", "-L", "--max-redirs", "5", "-b", "", "--cacert", gallery.certificates.caFile.string,
            ]
        )
        return exhibit.outcome(digest: answer.exit == .exited(0) ? FileDigest.sha256(answer.body) : nil)
    }

    @Test func galleryHasEveryRow() async throws {
        let plain = try await HostileGallery.start(size: 1000)
        let http2 = try await HostileGallery.start(transport: .h2, size: 1000)
        let exhibits = plain.exhibits + http2.exhibits
        #expect(Set(exhibits.map(\.row)) == Set(1...38).subtracting([37]))
        for gallery in [plain, http2] {
            #expect(Set(gallery.exhibits.map(\.name)).count == gallery.exhibits.count, "names are unique")
            #expect(gallery.exhibits.allSatisfy { $0.right != .bytes || $0.behavesAfter != nil || $0.needsDigest })
            await gallery.stop()
        }
    }

    @Test(arguments: ScriptedOrigin.Transport.allCases)
    func exhibitsDoWhatTheirLabelsSay(transport: ScriptedOrigin.Transport) async throws {
        let gallery = try await HostileGallery.start(transport: transport, size: 100_000)
        // Exhibits that curl does not notice, because it does not look for their fault.
        let unseen: Set = ["states-another-digest"]
        // The curl of Debian 12 cannot reuse a connection that it has opened by prior knowledge.
        let beyondCurl = transport == .h2c ? 20...22 : 0...0
        for exhibit in gallery.exhibits
        where !exhibit.isSlow && !unseen.contains(exhibit.name) && !beyondCurl.contains(exhibit.row) {
            let label: Comment = "\(exhibit.row) \(exhibit.name) over \(transport)"
            guard let count = exhibit.behavesAfter else {
                let outcome = try await fetch(exhibit, gallery)
                if exhibit.right == .refusal {
                    #expect(outcome == (exhibit.needsDigest ? .wrong : .refused), label)
                }
                continue
            }
            for _ in 0..<count { #expect(try await fetch(exhibit, gallery) != .right, label) }
            #expect(try await fetch(exhibit, gallery) == .right, label)
        }
        await gallery.stop()
    }

    @Test func mixingCacheGivesBothVersionsAndTheFreshOneIfItIsAsked() async throws {
        let gallery = try await HostileGallery.start(size: 1000)
        let exhibit = try #require(gallery.exhibits.first { $0.name == "stale-cache" })
        var outcomes: Set<HostileGallery.Outcome> = []
        for _ in 0..<20 { outcomes.insert(try await fetch(exhibit, gallery)) }
        #expect(outcomes == [.right, .wrong])
        for _ in 0..<5 {
            let fresh = try await Curl.get(exhibit.url, "-H", "Cache-Control: no-cache")
            #expect(exhibit.outcome(digest: FileDigest.sha256(fresh.body)) == .right)
        }
        await gallery.stop()
    }

    @Test func mirrorHasOtherBytesOfTheSameSize() async throws {
        let gallery = try await HostileGallery.start(size: 1000)
        let exhibit = try #require(gallery.exhibits.first { $0.mirror != nil })
        let other = try await Curl.get(try #require(exhibit.mirror))
        #expect(Int64(other.body.count) == exhibit.size)
        #expect(exhibit.outcome(digest: FileDigest.sha256(other.body)) == .wrong)
        await gallery.stop()
    }
}
