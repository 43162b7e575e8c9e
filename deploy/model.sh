#!/usr/bin/env bash
# Checks the formal models of how a path is fenced (docs/adr/0017), how connections keep to their number (docs/adr/0024), how chunks are leased
# (docs/protocol.md) and how groups complete: spin accepts each design, and rejects what leaves one thing out.
set -euo pipefail
cd "$(dirname "$0")/.."
. deploy/common.sh
models="$PWD/docs/model"
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

# Prints what spin found, and succeeds if it went through every state without finding anything; in a directory of its own.
check() { # model, options of it
    cd "$(mktemp -d "$directory/XXXXXX")"
    spin -a "${@:2}" "$models/$1.pml" >spin.log || { cat spin.log; fail "spin can't read the model $1"; }
    cc -O2 -w -DSAFETY -DNOBOUNDCHECK -DCOLLAPSE -DMEMLIM=4000 -o pan pan.c
    ./pan -m1000000 -w24 >pan.log
    grep -qE 'max search depth too small|out of memory|reached -DMEMLIM' pan.log && { cat pan.log; fail "spin did not get through: $*"; }
    grep -q 'errors: 0' pan.log
}

holds() { # model, options of it
    check "$@" || { cat pan.log; fail "the model does not hold: $*"; }
    say "The model $* holds: $(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' pan.log) states"
}

rejects() { # model, what is left out
    for variant in "${@:2}"; do
        ! check "$1" "-D$variant" || fail "the model $1 does not notice $variant"
        grep -q 'assertion violated' pan.log || { cat pan.log; fail "$variant is rejected for another reason"; }
    done
    say "What leaves one thing out of $1 is rejected"
}

# The large ones beside each other: each takes some minutes of one core.
(holds path) &
pids=($!)
(holds path -DNO_MARKS) &
pids+=($!)
(holds path -DKEEPS) &
pids+=($!)
for pid in "${pids[@]}"; do wait "$pid"; done
rejects path NO_REVOKE NO_RMDIR FROM_PARTS BY_NAME EARLY LATE_BEGIN NO_WAIT EMPTY_DELETES OWN_PURGE SHARED_PARTS ALWAYS_OWN NO_LATE LATE_IF_HELD
holds lanes
rejects lanes FREE_AT_RECALL LATE_GRANTS SAYS_LEASES OLD_SYNCS NO_CAP_LOCK EARLY_END
holds lease
holds lease -DSHRINKS
rejects lease NO_EPOCH SAME_EPOCH FROM_ANSWER NO_GATE EARLY BACKWARDS NO_FENCE REPAIRS_ALL LATE_ANSWERS CUTS_ALONE ASKED_END WRITES_ON
holds completion
holds completion -DLOG
rejects completion NO_LOCK UNSEALED AGAIN ONE_GENERATION ADDS_LATE ANY_TASK NO_TEST BY_SERIAL FREE_LOG EARLY_SERIAL
