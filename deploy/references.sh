#!/usr/bin/env bash
# Whatever a comment or a document refers to exists: invariants and faults, rows of the range contract, decisions, files, functions,
# tests. And the table of syncs in docs/architecture.md names every file that syncs something, and no other.
#
# What counts as a reference:
#   I7, F13                              an invariant or a fault of docs/invariants.md, in comments and documents
#   row 21, rows 6 and 29, rows 1 to 13  rows of docs/range-contract.md, in comments and documents
#   adr/0012, docs/events.md             a decision, a document; in comments and documents
# and between backquotes in docs/ and README.md, outside of blocks of code:
#   `MusterWorker/Storage/PartFile.swift`         a file or a directory of the repository, below its root, Sources, Tests or docs
#   `MusterStoreTests/ReportTests.functionName`   a test function: target, file, name
#   `close_groups()`, `makeDurable()`             a function of the database or of the sources
#   `close_groups` in a column headed SQL         a function of the database
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C
bad=0
complain() { printf '%s\n' "$*" >&2; bad=1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

documents=(README.md docs/*.md docs/adr/*.md)
mapfile -t sources < <(git ls-files 'Sources/*.swift' 'Tests/*.swift' 'Sources/*.sql')

# Every line of the documents, and the comment of every line of the sources, as "file:line<tab>text".
awk 'FILENAME ~ /\.md$/ { print FILENAME ":" FNR "\t" $0; next }
    FILENAME ~ /\.sql$/ { if (match($0, /--.*/)) print FILENAME ":" FNR "\t" substr($0, RSTART); next }
    match($0, /(^|[^:])\/\/.*/) { print FILENAME ":" FNR "\t" substr($0, RSTART) }' "${documents[@]}" "${sources[@]}" >"$work/lines"

# What is defined: one name a line, under its kind.
{
    sed -nE 's/^### (I[0-9]+) .*/number \1/p; s/^\| \*\*(F[0-9]+)\*\* .*/number \1/p' docs/invariants.md
    awk '/^## / { isTable = $0 == "## The rows" } isTable && match($0, /^\| [0-9]+[a-z]? /) { print "row", $2 }' docs/range-contract.md
    git ls-files 'Sources/*.sql' | xargs -r sed -nE 's/.*CREATE (OR REPLACE )?FUNCTION ([a-z0-9_]+).*/sql \2/p'
    awk 'FNR == 1 { count = split(FILENAME, way, "/"); suite = way[1] == "Tests" ? way[2] "/" substr(way[count], 1, length(way[count]) - 6) : "" }
        match($0, /func [A-Za-z0-9_]+/) {
            name = substr($0, RSTART + 5, RLENGTH - 5)
            print "swift", name
            if (suite != "") print "test", suite "." name
        }' "${sources[@]}"
    printf '%s\n' docs/adr/*.md | sed -nE 's|docs/(adr/[0-9]{4})-.*|decision \1|p'
} >"$work/defined"

# What is referred to, as "place<tab>kind<tab>name".
awk -F '\t' '
    # Every match of a pattern that is no part of a longer word.
    function each(place, text, pattern, kind,    before, after) {
        while (match(text, pattern)) {
            before = RSTART > 1 ? substr(text, RSTART - 1, 1) : " "
            after = substr(text, RSTART + RLENGTH, 1)
            if (before !~ /[A-Za-z0-9_%]/ && after !~ /[A-Za-z0-9_]/) print place "\t" kind "\t" substr(text, RSTART, RLENGTH)
            text = substr(text, RSTART + RLENGTH)
        }
    }
    {
        each($1, $2, "[IF][0-9][0-9]?", "number")
        each($1, $2, "adr/[0-9][0-9][0-9][0-9]", "decision")
        each($1, $2, "docs/[a-zA-Z0-9/_-]+[.]md", "path")
        each($1, $2, "[Rr]ows? [0-9]+[a-c]?(, [0-9]+[a-c]?| and [0-9]+[a-c]?| to [0-9]+[a-c]?|–[0-9]+[a-c]?)*", "rows")
    }' "$work/lines" |
    awk -F '\t' -v OFS='\t' '
        $2 != "rows" { print; next }
        { count = split($3, words, /[^0-9a-c]+/); for (i = 1; i <= count; i++) if (words[i] ~ /^[0-9]/) print $1, "row", words[i] }
    ' >"$work/referred"

# What stands between backquotes; in a table, whether its column is headed SQL.
awk -v OFS='\t' '
    FNR == 1 { isCode = isTable = 0 }
    /^```/ { isCode = !isCode; next }
    isCode { next }
    { cells = 1; cell[1] = $0 }
    /^\|/ {
        cells = split($0, cell, "|")
        if (!isTable) for (i = 1; i <= cells; i++) isSQL[i] = cell[i] ~ /^ *SQL *$/
    }
    { isTable = /^\|/ }
    {
        for (i = 1; i <= cells; i++) {
            count = split(cell[i], part, "`")
            for (j = 2; j <= count; j += 2) print FILENAME ":" FNR, isTable && isSQL[i] ? "sql" : "code", part[j]
        }
    }' "${documents[@]}" |
    while IFS=$'\t' read -r place kind name; do
        if [ "$kind" = sql ]; then :
        elif [[ $name =~ ^Muster[A-Za-z]+Tests/[A-Za-z0-9+]+\.[A-Za-z0-9_]+$ && $name != *.swift ]]; then kind="test"
        elif [[ $name =~ ^[A-Za-z_][A-Za-z0-9_]*\(\)$ ]]; then kind='function' name=${name%()}
        elif [[ $name =~ ^(Sources|Tests|deploy|docs|Muster[A-Za-z]*|CLib[a-z]*)/[A-Za-z0-9_.+/-]*$ ]]; then kind=path
        elif [[ $name =~ ^[A-Za-z0-9_.+-][A-Za-z0-9_.+/-]*/[A-Za-z0-9_.+-]+\.(swift|sql|md|sh|yaml)$ ]]; then kind=path
        else continue; fi
        printf '%s\t%s\t%s\n' "$place" "$kind" "$name"
    done >>"$work/referred"

declare -A defined
while read -r kind name; do defined["$kind $name"]=1; done <"$work/defined"
while IFS=$'\t' read -r place kind name; do
    case $kind in
        'function') [ -n "${defined["sql $name"]:-}${defined["swift $name"]:-}" ] ;;
        path) [ -e "$name" ] || [ -e "Sources/$name" ] || [ -e "Tests/$name" ] || [ -e "docs/$name" ] ;;
        *) [ -n "${defined["$kind $name"]:-}" ] ;;
    esac || complain "$place refers to a ${kind/sql/function of the database} that does not exist: $name"
done < <(sort -u "$work/referred")

# Syncs: the files whose code makes one, and the first column of the table.
grep -rnE '\b(fsync|fdatasync|muster_syncfs|synchronize(Data|FileSystem|Directory)?)\(' Sources --include='*.swift' --include='*.h' |
    grep -vE '^[^:]+:[0-9]+: *//' | sed -E 's|^Sources/([^:]+):.*|\1|' | sort -u >"$work/syncing"
awk '/^## / { isTable = $0 == "## What is synced, and when" } isTable && /^\| `/' docs/architecture.md >"$work/table"
# shellcheck disable=SC2016
sed -E 's/^\| `([^`]+)`.*/\1/' "$work/table" | sort -u >"$work/listed"
for file in $(comm -23 "$work/syncing" "$work/listed"); do complain "docs/architecture.md: the table of syncs does not name $file"; done
for file in $(comm -13 "$work/syncing" "$work/listed"); do complain "docs/architecture.md: the table of syncs names $file, which syncs nothing"; done
while IFS='|' read -r _ file functions _; do
    file=Sources/$(tr -d '` ' <<<"$file")
    for name in $(grep -oE '[A-Za-z0-9_]+\(\)' <<<"$functions" || true); do
        grep -qE "func ${name%()}\(" "$file" || complain "docs/architecture.md: the table of syncs names ${name}, which is not in $file"
    done
done <"$work/table"
exit $bad
