#!/bin/bash
# Runs all tests, and closes with a table of what ran and what was skipped. Installs what they need (fuse3) where this
# user may, and says what to run where not. Installs also the programs and packages that our files are opened with and
# compared by (GDAL, R, NumPy, tiledb ...), where this user may; tests that miss one say SKIPPED, and which.
#
#   scripts/test.sh [arguments of cargo test]
#
#   TILEFS_TEST_TOOLS=no    installs none of those programs
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
    echo "test.sh: $*" >&2
    exit 1
}

command -v cargo >/dev/null 2>&1 || fail "cargo is missing; install Rust as https://rustup.rs says"

missing=
command -v cc >/dev/null 2>&1 || missing="$missing build-essential"
# Root mounts without it, but some tests mount as an ordinary user.
command -v fusermount3 >/dev/null 2>&1 || missing="$missing fuse3"
if [ -n "$missing" ]; then
    if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
        apt-get update -qq
        # shellcheck disable=SC2086 # a list of packages
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
    elif command -v apt-get >/dev/null 2>&1; then
        fail "the tests need more packages; install them with: sudo apt-get install$missing"
    else
        fail "the tests need these packages, as Debian names them:$missing"
    fi
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT

{
    if [ "${TILEFS_TEST_TOOLS:-yes}" = no ]; then
        echo "SKIPPED: installing the programs that the files are opened with (TILEFS_TEST_TOOLS=no)"
    else
        scripts/install_test_tools.sh || echo "SKIPPED: the programs that the files are opened with"
    fi
    if [ ! -e /dev/fuse ]; then
        echo "SKIPPED: what mounts, /dev/fuse is missing (as root, try: modprobe fuse)"
    elif ! { : <>/dev/fuse; } 2>/dev/null; then
        echo "SKIPPED: what mounts, /dev/fuse cannot be opened (as root: chmod 666 /dev/fuse)"
    fi
} 2>&1 | tee -a "$log"

status=0
cargo test "$@" 2>&1 | tee -a "$log" || status=$?
awk -f scripts/test_table.awk "$log"
exit "$status"
