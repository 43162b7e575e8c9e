#!/usr/bin/env bash
# The quickest way to see Muster at work, on a fresh machine with Swift.
#
#   deploy/quickstart.sh URL…    downloads these into ./downloads, with 'muster get'
#   deploy/quickstart.sh         shows the main job: three workers fetch a group of large files, one of them is killed half-way,
#                                the others finish its work, and the group completes exactly once
#
# MUSTER_BINARY=PATH uses a program that is built already.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
. "$here/deploy/common.sh"

build() {
    if [ -n "${MUSTER_BINARY:-}" ]; then
        muster=$MUSTER_BINARY
        return
    fi
    require_swift
    say "Building (the first time takes some minutes)"
    swift build --package-path "$here" -c release --product muster >&2
    muster=$(swift build --package-path "$here" -c release --show-bin-path)/muster
}

if [ $# -gt 0 ]; then
    require_packages "${runtime_packages[@]}"
    build
    exec "$muster" get -d downloads "$@"
fi

require_packages "${runtime_packages[@]}" "${origin_packages[@]}"
build

# Everything that is started here listens on loopback, and ends with this script.
files=4
mebibytes=256
work=$(mktemp -d "${TMPDIR:-/tmp}/muster-quickstart.XXXXXX")
chmod 755 "$work"
children=()
finish() {
    local status=$? child
    for child in "${children[@]}"; do kill -TERM "$child" 2>/dev/null || true; done
    for child in "${children[@]}"; do wait "$child" 2>/dev/null || true; done
    [ $status -eq 0 ] || { tail -n 20 "$work"/*.log >&2 || true; }
    rm -rf "$work"
    exit $status
}
trap finish EXIT
trap 'exit 130' INT TERM

# Waits until a command succeeds; says what for when it never does.
await() { # seconds, what, command…
    local end=$((SECONDS + $1)) what=$2
    shift 2
    until "$@"; do
        [ $SECONDS -lt $end ] || fail "waited too long for $what"
        sleep 0.2
    done
}
field() { sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p"; }
free_port() { # of the range that is handed out to nobody by itself
    local port
    while port=$((20000 + RANDOM % 10000)); (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
    echo "$port"
}

say "An origin on this machine: nginx with $files files of $mebibytes MiB, 12 MiB/s per connection"
mkdir -p "$work/origin" "$work/temporary"
for number in $(seq $files); do
    head -c "$((mebibytes << 20))" /dev/urandom > "$work/origin/file-$number.bin"
done
origin_port=$(free_port)
cat > "$work/nginx.conf" <<EOF
daemon off;
master_process off;
pid $work/nginx.pid;
error_log $work/nginx.log;
events { }
http {
    log_format ranges '\$request_uri \$http_range \$status \$body_bytes_sent';
    access_log $work/requests.txt ranges;
    client_body_temp_path $work/temporary; proxy_temp_path $work/temporary; fastcgi_temp_path $work/temporary;
    uwsgi_temp_path $work/temporary; scgi_temp_path $work/temporary;
    server { listen 127.0.0.1:$origin_port; root $work/origin; limit_rate 12m; }
}
EOF
nginx=$(command -v nginx || echo /usr/sbin/nginx)
"$nginx" -c "$work/nginx.conf" -p "$work" 2>>"$work/nginx.log" &
children+=($!)
origin=http://127.0.0.1:$origin_port

say "muster up: a coordinator, three workers, and a database of its own"
"$muster" up --data "$work/data" --listen 127.0.0.1:0 --workers 3 --session-ttl 3s --json >"$work/up.json" 2>"$work/up.log" &
up=$!
children+=("$up")
listening() { kill -0 "$up" 2>/dev/null || fail "muster up has ended"; grep -q '"event":"listening"' "$work/up.json"; }
await 120 "the coordinator" listening
MUSTER_SERVER=$(grep '"event":"listening"' "$work/up.json" | field url)
export MUSTER_SERVER
all_workers() { [ "$("$muster" workers --json | wc -l)" -eq 3 ]; }
await 60 "three workers" all_workers
"$muster" workers

say "muster add demo: a group of $files files"
urls=()
for number in $(seq $files); do urls+=("$origin/file-$number.bin"); done
"$muster" add demo "${urls[@]}"

half_way() { [ "$("$muster" status demo --json | sed -n 's/.*"bytes":{"done":\([0-9]*\).*/\1/p')" -ge $(((files * mebibytes << 20) / 2)) ]; }
await 300 "half of the bytes" half_way
victim=$(grep '"event":"worker"' "$work/up.json" | head -n 1 | field pid)
say "Half of the bytes are there: kill -9 $victim, one of the three workers"
kill -9 "$victim"
"$muster" status demo
"$muster" wait demo --timeout 10m

say "Every file, compared by SHA-256 with the origin's"
for number in $(seq $files); do
    theirs=$(sha256sum < "$work/origin/file-$number.bin")
    ours=$(sha256sum < "$work/data/files/file-$number.bin")
    [ "$theirs" = "$ours" ] || fail "file-$number.bin differs"
    echo "file-$number.bin  ${ours%% *}  equal"
done

say "The completion of the group, in the log of events"
completions=$("$muster" events --group demo --json | grep '"type":"dev.muster.group.')
echo "$completions"
[ "$(echo "$completions" | wc -l)" -eq 1 ] || fail "there should be exactly one completion event"

kill -TERM "$up"
wait "$up" || fail "muster up did not stop well"
sent=$(awk '{ sum += $NF } END { printf "%.0f", sum }' "$work/requests.txt")
twice=$((sent - (files * mebibytes << 20)))
[ $twice -ge 0 ] || twice=0
say "Done. Fetched twice because of the kill: $((twice >> 10)) KiB of $((files * mebibytes)) MiB"
