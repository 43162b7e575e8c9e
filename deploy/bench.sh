#!/usr/bin/env bash
# Measures Muster beside other programs on this machine, meant to take 20 minutes after the build: deploy/bench.sh [DIRECTORY]
# Everything but a backlog of 10 million tasks (muster-bench backlog --tasks 10000000). Files are served from and written to /tmp and,
# for large files once more, memory. The tables come on standard output; DIRECTORY (default: .build/bench) gets them, JSON and a plot.
set -euo pipefail
cd "$(dirname "$0")/.."
. deploy/common.sh
results=${1:-.build/bench}

require_swift
require_packages "${runtime_packages[@]}" "${origin_packages[@]}" "${bench_packages[@]}"

say "Build, optimized"
for product in muster muster-bench; do
    swift build -c release --static-swift-stdlib --product "$product"
done
bench="$(swift build -c release --show-bin-path)/muster-bench"

mkdir -p "$results"
reports=("$results/all.json")
failed=0
say "Everything, in /tmp"
"$bench" all --rounds 2 --json "$results/all.json" >"$results/all.txt" || failed=$?
if [ -d /dev/shm ]; then
    say "Large files, memory to memory"
    "$bench" large --directory /dev/shm --json "$results/large-in-memory.json" >"$results/large-in-memory.txt" || failed=$?
    [ ! -e "$results/large-in-memory.json" ] || reports+=("$results/large-in-memory.json")
fi
"$bench" show "${reports[@]}" --svg "$results/performance.svg" | tee "$results/performance.txt"
say "Tables, JSON and a plot are in $results"
exit "$failed"
