# shellcheck shell=bash disable=SC2034
# Shared by the scripts here: what they need of a machine. Sourced, not run. deploy/fresh.sh notices when a package is not declared here.

say() { printf '\033[1m==> %s\033[0m\n' "$*" >&2; }
fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

# Swift >= 6.1, or how to get it.
require_swift() {
    local version
    version=$(swift --version 2>/dev/null | sed -n 's/.*Swift version \([0-9]*\.[0-9]*\).*/\1/p' | head -n 1)
    if [ -z "$version" ]; then
        fail "Swift 6.1 or newer is needed and there is no swift in PATH. Install it with swiftly: https://www.swift.org/install/linux/"
    fi
    if [ "$(printf '6.1\n%s\n' "$version" | sort -V | head -n 1)" != 6.1 ]; then
        fail "Swift 6.1 or newer is needed, this is $version. Get a newer one with swiftly: https://www.swift.org/install/linux/"
    fi
}

# Installs Debian packages that are missing, and asks for root only then.
require_packages() {
    local missing=() package
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
    done
    [ ${#missing[@]} -eq 0 ] && return
    command -v apt-get >/dev/null || fail "these packages are missing and there is no apt-get to install them: ${missing[*]}"
    local root=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || fail "run this as root once, to install: apt-get install ${missing[*]}"
        say "Root is needed to install: ${missing[*]}"
        root=(sudo)
    fi
    say "Installing ${missing[*]}"
    "${root[@]}" apt-get update -qq
    # Debian starts a database server and a web server as soon as they are installed; nobody here asked for these.
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# What Muster is built with and what it runs on.
runtime_packages=(ca-certificates git libbrotli-dev libcurl4-openssl-dev libpq-dev libisal-dev libzstd-dev pkg-config postgresql)
# What the demonstration and the tests serve files with.
origin_packages=(nginx)
# Other people's servers that the tests fetch from, and other people's programs that they compare with.
peer_packages=(pgbouncer prometheus apache2 caddy lighttpd lighttpd-mod-openssl squid vsftpd openssh-server openssh-client openssl curl aria2 wget2 rclone python3-venv)
# Other people's programs that deploy/bench.sh measures beside Muster, and what makes the certificates of the server they all fetch from.
bench_packages=(curl aria2 wget2 axel lftp rclone openssl)
# What the storm has beside other tests: a balancer before coordinators, and a library that makes system calls fail.
chaos_packages=(haproxy fiu-utils libfiu0)
# Counts what a worker calls the system for.
guard_packages=(strace valgrind)
# Checks the formal models, and what it needs to compile them.
model_packages=(spin gcc libc6-dev)
# Verifiers of what Muster sends and of what its API takes, by other people.
python_packages=(standardwebhooks==1.1.0 cloudevents==2.2.0 schemathesis==4.32.5)

# Installs the Python packages into an environment of their own, where the tests find them: DIRECTORY/bin/python3.
install_python_packages() { # directory
    local probe='import standardwebhooks, cloudevents.core.bindings.http, schemathesis'
    "$1/bin/python3" -c "$probe" 2>/dev/null && return
    rm -rf "$1"
    # The system's own first: it is the one that python3-venv belongs to.
    PATH="/usr/bin:$PATH" python3 -m venv "$1"
    "$1/bin/pip" install --quiet --disable-pip-version-check "${python_packages[@]}"
    "$1/bin/python3" -c "$probe" || fail "the Python packages don't work: ${python_packages[*]}"
}
