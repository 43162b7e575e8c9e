#!/usr/bin/env bash
# Chaos with real processes: deploy/chaos.sh --minutes N [--seed S] [--report FILE]
# Two coordinators behind HAProxy, PostgreSQL with a synchronous standby, four workers and another installation on one sink, nginx and hostile
# origins, and faults at random (docs/invariants.md), for N minutes after the build. A report of one page comes on standard output.
set -euo pipefail
cd "$(dirname "$0")/.."
. deploy/common.sh

usage() { fail "usage: deploy/chaos.sh --minutes N [--seed S] [--report FILE]"; }
minutes='' seed='' report="$PWD/.build/chaos.txt"
while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || usage
    case $1 in
    --minutes) minutes=$2 ;;
    --seed) seed=$2 ;;
    --report) report=$(realpath -m -- "$2") ;;
    *) usage ;;
    esac
    shift 2
done
[[ $minutes =~ ^[1-9][0-9]{0,3}$ ]] || usage
[[ $seed =~ ^[0-9]{0,20}$ ]] || usage

require_swift
require_packages "${runtime_packages[@]}" "${origin_packages[@]}" "${chaos_packages[@]}" curl

say "Build"
MUSTER_STRICT=1 swift build --build-tests
mkdir -p "$(dirname "$report")"
rm -f "$report"

say "$minutes minutes of faults"
[ -z "$seed" ] || export MUSTER_TEST_SEED=$seed
# A session of its own, so that an interrupt ends it here and once; whatever it has started ends with it.
setsid env MUSTER_STORM_SECONDS=$((minutes * 60)) MUSTER_STORM_REPORT="$report" \
    "$(MUSTER_STRICT=1 swift build --show-bin-path)/musterPackageTests.xctest" --testing-library swift-testing \
    --filter 'everyGroupEndsOnceAndEveryFileIsRightInAStormOfRequestsAndDeaths' >"$report.log" 2>&1 &
storm=$!
trap 'kill -TERM -- "-$storm" 2>/dev/null || true; wait "$storm" || true' EXIT
status=0
wait "$storm" || status=$?
trap - EXIT

[ ! -e "$report" ] || cat "$report"
grep -aq 'Test run with 1 test .*passed' "$report.log" || [ "$status" -ne 0 ] || status=1
if [ "$status" -ne 0 ]; then
    grep -a '^✘' "$report.log" | tail -n 40 >&2 || true
    fail "it failed; everything that it said is in $report.log"
fi
