#!/usr/bin/env bash
# Everything that continuous integration runs, on a fresh machine with Swift: deploy/test.sh
set -euo pipefail
cd "$(dirname "$0")/.."
. deploy/common.sh

require_swift
require_packages shellcheck "${model_packages[@]}" "${runtime_packages[@]}" "${origin_packages[@]}" "${peer_packages[@]}" "${guard_packages[@]}"

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
# One test target after the other: each starts servers of its own, and two cores are soon busy. The last ones start whole
# fleets of processes, one at a time.
for target in Core API Curl Postgres Store Coordinator Worker CommandLine; do
    # Few at once: a test that waits with all others behind two cores reaches the limit of its time.
    MUSTER_STRICT=1 swift test --skip-build --experimental-maximum-parallelization-width 16 \
        --filter "^Muster${target}Tests\\."
done
for target in TestSupport EmbeddedPostgres Bench EndToEnd; do
    MUSTER_STRICT=1 swift test --skip-build --no-parallel --filter "^Muster${target}Tests\\."
done

say "The receiver that was away"
wait "$outage" || { cat "$outage_log"; exit 1; }
trap - EXIT
grep 'Test run with' "$outage_log" | tail -n 1
