#!/usr/bin/env bash
# Mutants of Swift code: deploy/mutants.sh [NAME…]
#
# Each patch of Tests/Mutants breaks one rule in one place. This script applies one after the other to a copy of the last commit, builds
# it, and runs the tests that the patch names. They have to fail. For each mutant it prints "NAME caught by TEST" or "NAME NOT CAUGHT",
# and it ends with 1 if one is not caught. Without a mutant the same tests have to pass: that is tried first.
#
# The copy is .build/mutants, which stays built for the next run. MUSTER_MUTANTS_TREE names another clone, one that is built already.
set -euo pipefail
cd "$(dirname "$0")/.."
. deploy/common.sh

repository=$PWD
own="$repository/.build/mutants"
tree=${MUSTER_MUTANTS_TREE:-$own}
limit_seconds=900
export MUSTER_STRICT=1

require_swift
names=("$@")
if [ ${#names[@]} -eq 0 ]; then
    mapfile -t names < <(basename -s .patch Tests/Mutants/*.patch)
fi
for name in "${names[@]}"; do
    [ -f "Tests/Mutants/$name.patch" ] || fail "there is no Tests/Mutants/$name.patch"
done
[ -z "$(git status --porcelain -- Package.swift Sources Tests)" ] || fail "commit first: mutants are made of the last commit"

# A line of a patch's head.
head_of() { sed -n "s/^$2: //p;/^---/q" "Tests/Mutants/$1.patch"; } # name, word

work=$(mktemp -d)
applied=''
take_back() {
    [ -z "$applied" ] || git -C "$tree" apply --reverse "$repository/Tests/Mutants/$applied.patch"
    applied=''
}
trap 'take_back; rm -rf "$work"' EXIT

[ -e "$tree/.git" ] || git clone -q --shared --no-checkout "$repository" "$tree"
if [ "$tree" = "$own" ]; then
    # A run that was killed may have left its mutant.
    git -C "$tree" checkout -q --force --detach HEAD
elif [ -n "$(git -C "$tree" status --porcelain)" ]; then
    fail "$tree has changes of its own"
fi
commit=$(git rev-parse HEAD)
if [ "$(git -C "$tree" rev-parse HEAD)" != "$commit" ]; then
    git -C "$tree" fetch -q "$repository" "$commit"
    git -C "$tree" checkout -q --detach "$commit"
fi
# The same versions of all packages.
[ ! -f Package.resolved ] || [ Package.resolved -ef "$tree/Package.resolved" ] || cp Package.resolved "$tree/"

build() { # what is built
    if (cd "$tree" && swift build --build-tests) >"$work/build" 2>&1; then return; fi
    grep -a 'error:' "$work/build" | head -n 20 >&2 || tail -n 20 "$work/build" >&2
    fail "$1 does not build"
}

# Runs tests. What failed is in $work/failed, one name a line. Fails if none ran, or if they ended without naming one that failed.
run_tests() { # regular expression, of what
    local status=0
    (cd "$tree" && exec timeout --kill-after=10 "$limit_seconds" .build/debug/musterPackageTests.xctest --testing-library swift-testing \
        --experimental-maximum-parallelization-width 16 --filter "$1") >"$work/tests" 2>&1 || status=$?
    grep -aqE '^. Test .* (passed|failed) after' "$work/tests" || { tail -n 20 "$work/tests" >&2; fail "$2: no test ran that matches $1"; }
    grep -a '^✘ Test .* failed after' "$work/tests" | grep -av '^✘ Test run with' |
        sed -E 's/^✘ Test "?([A-Za-z0-9_]+).*/\1/' | sort -u >"$work/failed" || true
    [ "$status" -eq 0 ] || [ -s "$work/failed" ] || { tail -n 20 "$work/tests" >&2; fail "$2: the tests ended with $status and none failed"; }
}

say "Without a mutant"
build "the last commit"
all=''
for name in "${names[@]}"; do all+="|$(head_of "$name" Tests)"; done
run_tests "${all#|}" "the last commit"
[ ! -s "$work/failed" ] || fail "these fail without a mutant: $(paste -sd ' ' "$work/failed")"

missed=0
for name in "${names[@]}"; do
    git -C "$tree" apply "$repository/Tests/Mutants/$name.patch" || fail "$name can't be applied"
    applied=$name
    build "$name"
    run_tests "$(head_of "$name" Tests)" "$name"
    take_back
    if [ -s "$work/failed" ]; then
        printf '%s caught by %s\n' "$name" "$(paste -sd ' ' "$work/failed")"
    else
        printf '%s NOT CAUGHT (%s)\n' "$name" "$(head_of "$name" Breaks)"
        missed=$((missed + 1))
    fi
done
printf '%d mutants, %d not caught\n' ${#names[@]} "$missed"
[ "$missed" -eq 0 ]
