#!/usr/bin/env bash
# Runs quickstart.sh and then test.sh on a fresh machine: a new Debian, in a directory, that has nothing but Swift. What a script
# needs and does not declare is missing there, whatever this machine has.
#
#   deploy/fresh.sh                      both, with the commit that is checked out
#   deploy/fresh.sh --only quickstart    one of them: quickstart, test, or a script of yours, which is run in the clone
#   deploy/fresh.sh --root DIR           keeps the bare Debian and the packages' files in DIR, for the next run
#   deploy/fresh.sh --keep               leaves the fresh machine's files behind, and says where
#
# With --root the fresh machine is a new copy of the bare Debian, the clone is new, and the packages are installed anew: only their
# download and debootstrap are left out. The run that counts, before something is called done, is the one without --root.
#
# It needs root, debootstrap, a Swift toolchain and some 10 GB, and takes the network as it is. From this machine it takes over: where
# the Debian archive is (MUSTER_DEBIAN_MIRROR=URL names another), how apt, pip and git get there (proxies, additional certificates,
# directories that stand in for remote places), and CI.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
. "$here/deploy/common.sh"

# What a person installs who follows swift.org's instructions for Debian; Swift needs it, with Muster or without.
swift_packages=(
    binutils gcc git libc6-dev libcurl4-openssl-dev libedit-dev libicu-dev libncurses-dev libpython3-dev libsqlite3-dev
    libstdc++-12-dev libxml2-dev pkg-config tzdata uuid-dev
)

usage() { fail "usage: deploy/fresh.sh [--only quickstart|test|SCRIPT] [--root DIR] [--keep]"; }
scripts=()
kept=
keep=false
while [ $# -gt 0 ]; do
    case $1 in
        --only) [ $# -ge 2 ] || usage; scripts+=("$2"); shift 2 ;;
        --root) [ $# -ge 2 ] || usage; kept=$2; shift 2 ;;
        --keep) keep=true; shift ;;
        *) usage ;;
    esac
done
[ ${#scripts[@]} -gt 0 ] || scripts=(quickstart test)
for script in "${scripts[@]}"; do
    case $script in quickstart | test) ;; *) [ -f "$script" ] || fail "there is no script $script" ;; esac
done

[ "$(id -u)" -eq 0 ] || fail "a fresh machine needs root, to mount what is inside: sudo env PATH=\"\$PATH\" deploy/fresh.sh"
release=$(. /etc/os-release && [ "$ID" = debian ] && echo "${VERSION_CODENAME:-}") || true
[ -n "$release" ] || fail "this is not Debian, and the fresh machine is of the release of this one, since it uses this one's Swift"
command -v debootstrap >/dev/null || fail "debootstrap is needed: apt-get install debootstrap"
command -v git >/dev/null || fail "git is needed: apt-get install git"
require_swift
toolchain=$(swift -print-target-info | sed -n 's|.*"runtimeResourcePath": *"\(/.*\)/lib/swift".*|\1|p')
[ -x "$toolchain/bin/swift" ] || fail "the directory of the Swift toolchain was not found"
[ "$toolchain" != /usr ] ||
    fail "Swift is installed in /usr and can't be mounted alone. Get one with swiftly: https://www.swift.org/install/linux/"

# --- What ends with this script, however it ends ---
# Whatever is run in the fresh machine runs in namespaces of its own: when their first process dies, all processes in there die, and
# the mounts are gone with the last one. That process dies with this script.
child=
place=
finish() {
    local status=$? try
    trap - EXIT INT TERM HUP
    if [ -n "$child" ]; then
        kill -KILL "$child" 2>/dev/null || true
        wait "$child" 2>/dev/null || true
    fi
    if [ -n "$place" ] && $keep; then
        say "The fresh machine's files are in $place/machine"
    elif [ -n "$place" ]; then
        # Those who have just been killed may still be on their way out.
        [ -z "$kept" ] || place=$place/machine
        for try in 1 2 3 4 5; do
            if rm -rf --one-file-system "$place"; then break; fi
            sleep "$try"
        done
    fi
    exit $status
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

# In the background, since a trap waits for what is in the foreground, and with job control, so that Ctrl-C comes to this script alone.
isolated() { # command…
    local status=0
    set -m
    setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --mount-proc "$@" </dev/null 3>&- 9>&- &
    child=$!
    set +m
    wait "$child" || status=$?
    child=
    return $status
}

# Runs in the new namespaces: mounts what a machine has, changes to the fresh machine, and becomes its first process, which runs the
# command and collects orphans.
enter() { # command…
    local pair name
    mount --bind "$machine" "$machine"
    cd "$machine"
    mount -t proc proc proc
    mount -t sysfs -o ro,nosuid,nodev,noexec sysfs sys
    mount -t tmpfs -o mode=755,nosuid tmpfs dev
    for name in null zero full random urandom tty; do
        : > "dev/$name"
        mount --bind "/dev/$name" "dev/$name"
    done
    mkdir dev/pts dev/shm
    mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
    mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs dev/shm
    ln -s pts/ptmx dev/ptmx
    ln -s /proc/self/fd dev/fd
    for name in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${name%:*}" "dev/${name#*:}"; done
    for pair in "${mounts[@]}"; do
        mkdir -p ".${pair#*|}"
        mount --bind -o ro "${pair%%|*}" ".${pair#*|}"
    done
    if [ -n "$packages" ]; then mount --bind "$packages" var/cache/apt/archives; fi
    pivot_root . .
    umount -l .
    cd /root/muster
    # Signals that this machine ignores (those of nohup and of background jobs) are not ignored there.
    exec env -i --default-signal "${environment[@]}" bash -c '"$@"; exit $?' first "$@"
}
inside() { # command…
    isolated bash -euc "$(declare -f enter); $(declare -p machine packages mounts environment); enter \"\$@\"" enter "$@"
}
duration() { printf '%d min %02d s' $(($1 / 60)) $(($1 % 60)); }

# --- The bare Debian ---
if [ -n "$kept" ]; then
    mkdir -p "$kept"
    kept=$(cd "$kept" && pwd)
    [ -d "$kept/bare" ] || [ -z "$(ls -A "$kept")" ] || fail "$kept is not empty, and was not made by this script"
    exec 9>"$kept/lock"
    flock -n 9 || fail "another run uses $kept"
    place=$kept
    rm -rf --one-file-system "$place/machine" "$place/unfinished"
else
    place=$(mktemp -d "${TMPDIR:-/var/tmp}/muster-fresh.XXXXXX")
fi
machine=$place/machine
log=$place/log

# A line of sources.list for each part of this release that this machine gets from Debian, the release itself first.
sources() {
    local uri suite
    if [ -n "${MUSTER_DEBIAN_MIRROR:-}" ]; then
        echo "deb $MUSTER_DEBIAN_MIRROR $release main"
        return
    fi
    apt-get --print-uris update |
        sed -nE "s#^'(.*)/dists/($release(-updates|-security)?)/InRelease'.*#\1 \2#p" | sort -u -k 2 |
        while read -r uri suite; do
            # Others than Debian name their suites like that as well.
            /usr/lib/apt/apt-helper download-file "${uri%/}/dists/$suite/InRelease" "$place/InRelease" >/dev/null 2>&1 || continue
            if grep -qx 'Origin: Debian' "$place/InRelease"; then echo "deb ${uri%/} $suite main"; fi
            rm -f "$place/InRelease"
        done
}
sources=$(sources)
mirror=$(sed -n "s/^deb \([^ ]*\) $release main$/\1/p" <<<"$sources" | head -n 1)
[ -n "$mirror" ] ||
    fail "this machine's apt reaches no archive with Debian $release. Name one: MUSTER_DEBIAN_MIRROR=URL deploy/fresh.sh"
# debootstrap does not know apt's proxy.
if [ -z "${http_proxy:-}" ]; then
    eval "$(apt-config shell http_proxy Acquire::http::Proxy)"
    [ -z "${http_proxy:-}" ] || export http_proxy
fi

if [ ! -d "$place/bare" ]; then
    say "A bare Debian $release"
    SECONDS=0
    isolated debootstrap --variant=minbase "$release" "$place/unfinished" "$mirror" >"$log" 2>&1 ||
        { tail -n 20 "$log" >&2; fail "debootstrap failed"; }
    mv "$place/unfinished" "$place/bare"
    say "debootstrap took $(duration $SECONDS)"
fi
packages=
if [ -n "$kept" ]; then
    cp -a "$place/bare" "$machine"
    packages=$place/packages
    mkdir -p "$packages"
else
    mv "$place/bare" "$machine"
fi

# --- How things are reached from there: as they are from here ---
chmod 755 "$machine"
cp -L /etc/resolv.conf /etc/hosts "$machine/etc/"
echo "$sources" > "$machine/etc/apt/sources.list"
# Nothing that is installed starts a service.
printf '#!/bin/sh\nexit 101\n' > "$machine/usr/sbin/policy-rc.d"
chmod 755 "$machine/usr/sbin/policy-rc.d"

# apt's ways to the archive, where this machine's differ from those of an apt without configuration.
printf 'Dir::Etc::main "/dev/null";\nDir::Etc::parts "/dev/null";\n' > "$place/apt.conf"
comm -13 <(APT_CONFIG=$place/apt.conf apt-config dump | sort) <(apt-config dump | sort) | grep '^Acquire::' \
    > "$machine/etc/apt/apt.conf.d/90this-machine" || true
rm "$place/apt.conf"

# Certificates that somebody added to those of Debian count there, too, as soon as ca-certificates is installed. Not before, and no
# others: a script that needs certificates has to declare them.
bundle=/etc/ssl/certs/ca-certificates.crt
if [ -f "$bundle" ]; then
    bodies() { awk '/BEGIN CERT/ { body = ""; next } /END CERT/ { print body; next } { body = body $0 }' "$@"; }
    find /usr/share/ca-certificates -name '*.crt' -exec cat {} + 2>/dev/null | bodies | sort > "$place/known"
    number=0
    while read -r body; do
        number=$((number + 1))
        mkdir -p "$machine/usr/local/share/ca-certificates"
        { echo '-----BEGIN CERTIFICATE-----'; fold -w 64 <<<"$body"; echo '-----END CERTIFICATE-----'; } \
            > "$machine/usr/local/share/ca-certificates/this-machine-$number.crt"
    done < <(bodies "$bundle" | sort | comm -23 - "$place/known")
    rm "$place/known"
    # apt may need them to get that very package.
    if grep -q '^deb https:' <<<"$sources"; then
        cp -L "$bundle" "$machine/etc/apt/this-machine.crt"
        echo 'Acquire::https::CAInfo "/etc/apt/this-machine.crt";' >> "$machine/etc/apt/apt.conf.d/90this-machine"
    fi
fi

mounts=("$toolchain|/opt/swift")
environment=(PATH=/opt/swift/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root USER=root LOGNAME=root)
proxies='(http|https|ftp|all|no)_proxy|(HTTP|HTTPS|FTP|ALL|NO)_PROXY'
certificates='SSL_CERT_(FILE|DIR)|CURL_CA_BUNDLE|REQUESTS_CA_BUNDLE|GIT_SSL_CAINFO'
while IFS= read -r name; do
    environment+=("$name=${!name}")
    # A bundle of somebody's own, outside of Debian's directory.
    if [[ ${!name} == /* && ${!name} != /etc/ssl/* && -f ${!name} ]]; then install -D -m 644 "${!name}" "$machine${!name}"; fi
done < <(compgen -e | grep -xE "CI|TERM|PIP_.*|$proxies|$certificates")

stand_in() { # directory: mounts it where it is here, once
    local pair
    for pair in "${mounts[@]}"; do [ "$pair" != "$1|$1" ] || return 0; done
    mounts+=("$1|$1")
}
# SwiftPM's packages: rules of git that put a local directory in the place of a remote one.
while read -r name value; do
    directory=${name#url.}
    directory=${directory%.insteadof}
    directory=${directory#file://}
    if [[ $directory != /* || ! -d $directory ]]; then continue; fi
    git config --file "$machine/etc/gitconfig" --add "url.$directory.insteadOf" "$value"
    stand_in "$(realpath "$directory")"
done < <(git -C / config --get-regexp '^url\..*\.insteadof$')
# pip's files, and the directories that they or the environment name.
for name in /etc/pip.conf "${XDG_CONFIG_HOME:-$HOME/.config}/pip/pip.conf" "$HOME/.pip/pip.conf"; do
    if [ ! -f "$name" ]; then continue; fi
    case $name in /etc/*) file=$machine$name ;; *) file=$machine/root/.config/pip/pip.conf ;; esac
    install -D -m 644 "$name" "$file"
    while read -r directory; do
        if [ -d "$directory" ]; then stand_in "$(realpath "$directory")"; fi
    done < <(sed -nE 's#^(find-links|index-url|extra-index-url) *= *(file://)?(/.*)#\3#p' "$name")
done
for name in ${PIP_FIND_LINKS:-} ${PIP_INDEX_URL:-} ${PIP_EXTRA_INDEX_URL:-}; do
    if [[ ${name#file://} == /* && -d ${name#file://} ]]; then stand_in "$(realpath "${name#file://}")"; fi
done

# --- The clone: what is committed, by way of a file, so that it shares nothing with this one ---
commit=$(git -c safe.directory='*' -C "$here" rev-parse HEAD)
[ -z "$(git -c safe.directory='*' -C "$here" status --porcelain)" ] || say "What is not committed here is not there"
git -c safe.directory='*' -C "$here" bundle create --quiet "$place/muster.bundle" HEAD
git -c advice.detachedHead=false clone --quiet "$place/muster.bundle" "$machine/root/muster"
rm "$place/muster.bundle"

# --- The runs ---
say "What Swift needs of Debian"
SECONDS=0
inside bash -c 'set -e
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "$@"' install "${swift_packages[@]}" >"$log" 2>&1 ||
    { tail -n 20 "$log" >&2; fail "the packages that Swift needs can't be installed"; }
say "Installing that took $(duration $SECONDS)"

results=
for script in "${scripts[@]}"; do
    case $script in
        quickstart | test) name=deploy/$script.sh command=$name ;;
        *) name=$script command=/root/script && install -m 755 "$script" "$machine$command" ;;
    esac
    say "$name on a fresh machine"
    SECONDS=0
    status=0
    exec 3> >(exec tee "$log")
    tee=$!
    inside "$command" >&3 2>&1 || status=$?
    exec 3>&-
    wait "$tee" || true
    [ $status -eq 0 ] || fail "on a fresh machine $name ends with $status, after $(duration $SECONDS)"
    results+="${results:+, }$name in $(duration $SECONDS)"
    if grep -qE '(Test|Suite) .* skipped(:|\.)' "$log"; then
        say "Tests that were passed by there; none should be for want of a program"
        grep -E '(Test|Suite) .* skipped(:|\.)' "$log" | sort -u >&2
    fi
done
version=$(swift --version 2>/dev/null | sed -n 's/.*Swift version \([^ ]*\).*/\1/p' | head -n 1)
say "A fresh Debian $release with Swift $version runs commit ${commit:0:12}: $results"
