#!/usr/bin/env bash
# Everything that continuous integration runs, on a fresh machine with Swift: deploy/test.sh
set -euo pipefail
cd "$(dirname "$0")/.."
. deploy/common.sh

require_swift
require_packages shellcheck "${model_packages[@]}" "${runtime_packages[@]}" "${origin_packages[@]}" "${peer_packages[@]}" "${chaos_packages[@]}" "${guard_packages[@]}"

say "Format"
swift format lint --strict --recursive --parallel Package.swift Sources Tests

say "Shell scripts"
shellcheck -x .ci/run deploy/*.sh

say "House rules"
deploy/tidy.sh

say "The formal model"
deploy/model.sh

say "Build, warnings are errors"
MUSTER_STRICT=1 swift build --build-tests

say "Verifiers of webhooks and CloudEvents"
install_python_packages "$PWD/.build/python"
# Named, so that no test takes them for missing and passes by.
export MUSTER_TEST_PYTHON="$PWD/.build/python/bin/python3"

say "The main job, as the README shows it"
MUSTER_BINARY="$(MUSTER_STRICT=1 swift build --show-bin-path)/muster" deploy/quickstart.sh

say "A receiver that is away for a minute, beside the tests: the next try comes after five"
outage_log="$PWD/.build/receiver-outage.log"
# Not by `swift test`, of which one at a time may look at the build.
setsid env MUSTER_RECEIVER_OUTAGE_SECONDS=60 \
    "$(MUSTER_STRICT=1 swift build --show-bin-path)/musterPackageTests.xctest" --testing-library swift-testing \
    --filter "^MusterEndToEndTests\..*ReceiverOutage" >"$outage_log" 2>&1 &
outage=$!
trap 'kill -TERM -- "-$outage" 2>/dev/null || true' EXIT

say "Tests"
logs="$PWD/.build/test-logs"
rm -rf "$logs"
mkdir -p "$logs"
times=()
# Runs the tests of a target; those that fail are counted at the end. With a seed in MUSTER_TEST_SEED, for which it has a log of its own.
run() { # target, options of swift test…
    local target=$1 start=$SECONDS log="$logs/$1${MUSTER_TEST_SEED:+-$MUSTER_TEST_SEED}"
    shift
    MUSTER_STRICT=1 swift test --skip-build "$@" --filter "^Muster${target}Tests\\." 2>&1 | tee "$log" ||
        printf '%s\n' "✘ $target ended badly" >>"$log"
    times+=("$(printf '%-16s %4d s' "$target" $((SECONDS - start)))")
}
# One test target after the other: each starts servers of its own, and two cores are soon busy. The last ones start whole
# fleets of processes, one at a time.
for target in Core API Curl Postgres Store Coordinator Worker CommandLine; do
    # Few at once: a test that waits with all others behind two cores reaches the limit of its time.
    run "$target" --experimental-maximum-parallelization-width 16
done
# With this a history that fails is repeated exactly by its seed.
export SWIFT_DETERMINISTIC_HASHING=1
# 10,000 histories by five processes: what a killed worker of a history has left is freed with its process. The seeds are fixed, so that a change fails
# for what it changes; other seeds look for what nobody knows yet (docs/CONTRIBUTING.md).
export MUSTER_SIMULATION_HISTORIES=2000
for MUSTER_TEST_SEED in 1 2 3 4 5; do
    export MUSTER_TEST_SEED
    run Simulation
done
unset SWIFT_DETERMINISTIC_HASHING MUSTER_SIMULATION_HISTORIES MUSTER_TEST_SEED
for target in TestSupport EmbeddedPostgres Bench EndToEnd; do
    run "$target" --no-parallel
done

say "The receiver that was away"
wait "$outage" || printf '%s\n' "✘ ReceiverOutage ended badly" >>"$outage_log"
trap - EXIT
cp "$outage_log" "$logs/ReceiverOutage"
tail -n 5 "$outage_log"

# A run that ends badly without a test that failed has crashed: it counts as one.
passed=0 failed=0
for log in "$logs"/*; do
    bad=$(grep -a '^✘ Test .* failed after' "$log" | grep -avc '^✘ Test run with' || true)
    [ "$bad" -gt 0 ] || bad=$(grep -ac '^✘ .* ended badly' "$log" || true)
    total=$(sed -n 's/^. Test run with \([0-9]*\) tests\{0,1\} .*/\1/p' "$log" | tail -n 1)
    [ "$bad" -eq 0 ] || grep -a '^✘' "$log" | tail -n 40
    passed=$((passed + ${total:-$bad} - bad)) failed=$((failed + bad))
done
printf '%s\n' "${times[@]}"
grep -ahE '^(histories|seconds|histories a second): ' "$logs"/Simulation-* || true
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
