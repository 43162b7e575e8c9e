#!/usr/bin/env bash
# Tests under a sanitizer: deploy/sanitize.sh address|thread [TARGET…]
# Builds everything with AddressSanitizer (and with UndefinedBehaviorSanitizer for C) or with ThreadSanitizer, apart from other builds, and
# runs the tests of some targets, by default of those next to C libraries, sockets and files. Before a release (docs/CONTRIBUTING.md).
set -euo pipefail
cd "$(dirname "$0")/.."
. deploy/common.sh

usage() { fail "usage: deploy/sanitize.sh address|thread [TARGET…], with targets such as Curl"; }
kind=${1-}
[ $# -eq 0 ] || shift
options=(--scratch-path ".build-$kind" --sanitize "$kind")
case $kind in
address)
    # C functions in headers are compiled by Swift's importer, so that the flag has to reach it.
    options+=(-Xcc -fsanitize=undefined -Xcc -fno-sanitize-recover=undefined -Xlinker -lstdc++)
    export ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0 UBSAN_OPTIONS=print_stacktrace=1
    ;;
thread) export TSAN_OPTIONS=halt_on_error=0:exitcode=66:second_deadlock_stack=1 ;;
*) usage ;;
esac
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(Core API Curl Postgres Worker)

require_swift
require_packages "${runtime_packages[@]}" "${origin_packages[@]}"

say "Build with the sanitizer of $kind"
swift build --build-tests "${options[@]}"

status=0
for target in "${targets[@]}"; do
    say "$target"
    swift test --skip-build "${options[@]}" --experimental-maximum-parallelization-width 8 --filter "^Muster${target}Tests\\." || status=$?
done
exit "$status"
