#!/usr/bin/env bash
# The house rules that a machine can check (docs/CONTRIBUTING.md): allowed imports, the length of files, what may not stand in the
# sources, and references that lead nowhere.
set -euo pipefail
cd "$(dirname "$0")/.."
bad=0
complain() { printf '%s\n' "$*" >&2; bad=1; }

forbid_import() { # directory, regular expression, reason
    local found
    found=$(grep -rnE "^(public |internal |package |@preconcurrency )*import ($2)\$" "$1" --include='*.swift' || true)
    [ -z "$found" ] || complain "$3:"$'\n'"$found"
}
forbid_import Sources/MusterWorker 'MusterStore|MusterPostgres|CLibpq' 'the worker never imports the store'
forbid_import Sources/MusterCoordinator 'MusterCurl|CLibcurl' 'the coordinator never imports curl'
forbid_import Sources/MusterCore 'Foundation|NIO.*|Hummingbird|Logging' 'the core has no I/O'
forbid_import Sources/MusterAPI 'Foundation|NIO.*|Hummingbird|Muster(Curl|Postgres|Store)' 'the API target has no transport'
forbid_import Sources/MusterStore 'MusterAPI|Hummingbird' 'the store speaks the domain, not HTTP'

while read -r lines file; do
    [ "$file" = total ] || [ "$lines" -le 350 ] || complain "$file has $lines lines, more than 350"
done < <(git ls-files -z '*.swift' | xargs -0 wc -l)

while read -r lines file; do
    [ "$file" = total ] || [ "$lines" -le 300 ] || complain "$file has $lines lines, more than 300"
done < <(git ls-files -z 'Sources/MusterStore/Schema/Verbs/*.sql' | xargs -0 wc -l)
# shellcheck disable=SC2016
long=$(git ls-files -z 'Sources/*.sql' | xargs -0 awk '
    /^CREATE FUNCTION/ { name = $3; start = FNR }
    /^\$\$;$/ { if (name != "" && FNR - start >= 80) print FILENAME ": " name " has " FNR - start + 1 " lines"; name = "" }')
[ -z "$long" ] || complain "a function of the database has at most 80 lines:"$'\n'"$long"

left=$(git ls-files -z 'Sources/*.swift' | xargs -0 grep -nE 'try!|fatalError\(|as! |Task\.detached|(TODO|FIXME|XXX)' || true)
[ -z "$left" ] || complain "these don't belong into the sources:"$'\n'"$left"

# The simulation runs this code on a clock and an executor of its own (adr/0050).
real=$(git ls-files -z 'Sources/MusterWorker/*.swift' 'Sources/MusterCoordinator/Leasing/*.swift' | xargs -0 grep -nE 'Task\.sleep|ContinuousClock|\bTask( \{|\()' || true)
[ -z "$real" ] || complain "the simulation can't run what waits for real time, or starts a task of its own:"$'\n'"$real"

top=$(git ls-files | cut -d/ -f1 | sort -u | grep -vE '^(Package\.swift|README\.md|LICENSE|Sources|Tests|deploy|docs|\..*)$' || true)
[ -z "$top" ] || complain "the top level is fixed; these are not of it: $top"

# Mutants (deploy/mutants.sh): each still applies, breaks one place, says what it breaks, and stands in the table.
for patch in Tests/Mutants/*.patch; do
    name=$(basename -s .patch "$patch")
    [ "$(grep -c '^@@ ' "$patch")" -eq 1 ] || complain "$patch has not one hunk"
    for word in Breaks Invariant Tests; do
        sed '/^---/q' "$patch" | grep -qE "^$word: ." || complain "the head of $patch has no line $word"
    done
    git apply --check "$patch" || complain "$patch does not apply any more: make it anew"
    grep -qF "| \`$name\` |" docs/invariants.md || complain "docs/invariants.md: the table of mutants lacks $name"
done
# shellcheck disable=SC2016
while read -r name; do
    [ -f "Tests/Mutants/$name.patch" ] || complain "docs/invariants.md: the table of mutants names $name, which is not in Tests/Mutants"
done < <(sed -nE 's/^\| `([a-z0-9-]+)` \| .* \| I[0-9]+ \| .*/\1/p' docs/invariants.md)

deploy/references.sh || bad=1
exit $bad
