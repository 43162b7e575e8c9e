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

# The runner itself: of `swift test`, one at a time may look at the build.
runner="$(MUSTER_STRICT=1 swift build --show-bin-path)/musterPackageTests.xctest"
logs="$PWD/.build/test-logs"
rm -rf "$logs"
mkdir -p "$logs"
: >"$PWD/.build/test-times"
# Runs tests whose log has a name; those that fail are counted at the end.
run() { # name, filter, options of the runner…
    local name=$1 filter=$2 start=$SECONDS
    shift 2
    MUSTER_STRICT=1 "$runner" --testing-library swift-testing --filter "$filter" "$@" >"$logs/$name" 2>&1 ||
        printf '%s\n' "✘ $name ended badly" >>"$logs/$name"
    printf '%-16s %4d s\n' "$name" $((SECONDS - start)) >>"$PWD/.build/test-times"
    printf '%s: %s\n' "$name" "$(grep -aE '^. Test run with|^✘ .* ended badly' "$logs/$name" | tail -n 1)"
}
# Runs targets one after the other. Few of their tests at once: a test that waits with all others behind two cores reaches the limit of its time.
targets() { # name…
    local name
    for name in "$@"; do run "$name" "^Muster${name}Tests\\." --experimental-maximum-parallelization-width 16; done
}
# Runs tests that start whole fleets of processes, and wait for them: one at a time, in each of two lanes.
first_fleets() {
    run EndToEnd-1 "^MusterEndToEndTests\\.$first_half" --no-parallel
    run TestSupport '^MusterTestSupportTests\.' --no-parallel
}
second_fleets() {
    run EndToEnd-2 '^MusterEndToEndTests\.' --skip "^MusterEndToEndTests\\.$first_half" --no-parallel
    run Bench '^MusterBenchTests\.' --no-parallel
    run EmbeddedPostgres '^MusterEmbeddedPostgresTests\.' --no-parallel
}
first_half='EndToEnd/([A-Q]|Re)'
# Each seed has a process of its own: what a killed worker of a history has left is freed with its process. The seeds are fixed, so that a change fails for
# what it changes; other seeds look for what nobody knows yet (docs/CONTRIBUTING.md). A history that fails is repeated exactly by its seed.
histories() { # seed…
    local MUSTER_TEST_SEED
    export SWIFT_DETERMINISTIC_HASHING=1 MUSTER_SIMULATION_HISTORIES=2000 MUSTER_TEST_SEED
    for MUSTER_TEST_SEED in "$@"; do run "Simulation-$MUSTER_TEST_SEED" '^MusterSimulationTests\.'; done
}
lanes=()
# Runs one of the functions above beside what follows, in a process group of its own.
beside() { # function, arguments…
    set -m
    "$@" &
    lanes+=($!)
    set +m
}
# Waits for what runs beside.
together() {
    wait "${lanes[@]}"
    lanes=()
}
end_lanes() {
    local lane
    for lane in "${lanes[@]}"; do kill -TERM -- "-$lane" 2>/dev/null || true; done
}
trap end_lanes EXIT

say "Tests"
# A receiver that is away for a minute: the next try comes after five.
MUSTER_RECEIVER_OUTAGE_SECONDS=60 beside run ReceiverOutage '^MusterEndToEndTests\..*ReceiverOutage'
targets Core API Curl Postgres Store Coordinator Worker CommandLine
together
histories 1 2 3 4 5
beside first_fleets
beside second_fleets
together
trap - EXIT

# A run that ends badly without a test that failed has crashed: it counts as one.
passed=0 failed=0
for log in "$logs"/*; do
    bad=$(grep -a '^✘ Test .* failed after' "$log" | grep -avc '^✘ Test run with' || true)
    [ "$bad" -gt 0 ] || bad=$(grep -ac '^✘ .* ended badly' "$log" || true)
    total=$(sed -n 's/^. Test run with \([0-9]*\) tests\{0,1\} .*/\1/p' "$log" | tail -n 1)
    [ "$bad" -eq 0 ] || grep -aA 4 '^✘' "$log" | tail -n 200
    passed=$((passed + ${total:-$bad} - bad)) failed=$((failed + bad))
done
cat "$PWD/.build/test-times"
grep -ahE '^(histories|seconds|histories a second): ' "$logs"/Simulation-* || true
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
