#!/usr/bin/env bash
# Checks the formal model of how a path is fenced (docs/adr/0017): spin accepts the design, and rejects what leaves one thing out.
set -euo pipefail
cd "$(dirname "$0")/.."
. deploy/common.sh
model="$PWD/docs/model/path.pml"
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"

# Prints what spin found, and succeeds if it went through every state without finding anything.
check() { # options of the model
    spin -a "$@" "$model" >spin.log || { cat spin.log; fail "spin can't read $model"; }
    cc -O2 -w -DSAFETY -DNOBOUNDCHECK -DMEMLIM=4000 -o pan pan.c
    ./pan -m1000000 -w24 >pan.log
    grep -qE 'max search depth too small|out of memory|reached -DMEMLIM' pan.log && { cat pan.log; fail "spin did not get through: $*"; }
    grep -q 'errors: 0' pan.log
}

for variant in '' -DNO_MARKS; do
    check ${variant:+"$variant"} || { cat pan.log; fail "the model does not hold${variant:+ with $variant}"; }
    say "The model holds${variant:+ with $variant}: $(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' pan.log) states"
done
for variant in NO_REVOKE NO_RMDIR FROM_PARTS BY_NAME EARLY LATE_BEGIN NO_WAIT EMPTY_DELETES OWN_PURGE; do
    ! check "-D$variant" || fail "the model does not notice $variant"
    grep -q 'assertion violated' pan.log || { cat pan.log; fail "$variant is rejected for another reason"; }
done
say "What leaves one thing out is rejected"
