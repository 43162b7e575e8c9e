/// An FTP server for misbehaviour: it answers each command by a table, and sends the same bytes on every data connection.
struct ScriptedFTP {
    private let control: RawServer
    private let data: RawServer

    /// `replies` replace or add to the usual replies, by the command's word; an empty text means no reply. `end` is the reply
    /// after the data connection; nil means no reply.
    init(
        content: [UInt8],
        greeting: String = "220 here",
        replies: [String: String] = [:],
        end: String? = "226 done",
        log: @escaping @Sendable (String) -> Void = { _ in }
    ) throws {
        let data = try RawServer { connection, _ in
            connection.send(content)
            connection.finish()
            connection.waitForPeerToClose()
        }
        let usual = [
            "USER": "331 password?", "PASS": "230 in", "PWD": "257 \"/\"", "MDTM": "213 19941106084937",
            "EPSV": "229 here (|||\(data.port)|)", "TYPE": "200 so be it", "SIZE": "213 \(content.count)",
            "REST": "350 go on", "RETR": "150 here it comes", "QUIT": "221 bye",
        ]
        let answers = usual.merging(replies) { _, own in own }
        self.data = data
        control = try RawServer { connection, _ in
            connection.send(greeting + "\r\n")
            while let command = connection.readLine() {
                log(command)
                let word = String(command.prefix { $0 != " " })
                let reply = answers[word] ?? "502 what?"
                if !reply.isEmpty { connection.send(reply + "\r\n") }
                if word == "RETR", reply.hasPrefix("1"), let end { connection.send(end + "\r\n") }
            }
        }
    }

    var url: String { "ftp://127.0.0.1:\(control.port)/file" }

    func stop() {
        control.stop()
        data.stop()
    }
}
