import MusterCore
import Testing

@Suite struct ShellWordTests {
    /// A command that Muster tells the user to type does nothing else, even with a hostile name: names come from foreign URLs.
    @Test func wordsAreQuotedForTheShell() {
        let words = [
            "a/b-1.tar.gz": "a/b-1.tar.gz", "a b": "'a b'", "$(touch x)": "'$(touch x)'", "it's": #"'it'\''s'"#,
            "": "''",
            "--json": "-- '--json'", "é": "'é'", "a;b": "'a;b'", "~": "'~'", "a\u{301}": "'a\u{301}'",
            "a\u{202E}b": #"$'a\342\200\256b'"#, "it's\t\\": #"$'it\047s\011\134'"#, "-\u{0}": #"-- $'-\000'"#,
        ]
        for (word, typed) in words { #expect("\(ShellWord(word))" == typed) }
    }
}
