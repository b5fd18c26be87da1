#!/bin/sh
# Runs all tests. Installs what they need (fuse3) where this user may, and says what to run where not. Installs also
# the programs that our files are opened with (GDAL, R, NumPy ...), where this user may; tests that miss one say
# SKIPPED, and which.
#
#   scripts/test.sh [arguments of cargo test]
#
#   TILEFS_TEST_TOOLS=no    installs none of those programs
set -eu
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

if [ "${TILEFS_TEST_TOOLS:-yes}" != no ]; then
    scripts/install_test_tools.sh || echo "test.sh: SKIPPED: the programs that the files are opened with" >&2
fi

if [ ! -e /dev/fuse ]; then
    echo "test.sh: /dev/fuse is missing: the tests that mount will be skipped (as root, try: modprobe fuse)" >&2
elif ! { : <>/dev/fuse; } 2>/dev/null; then
    echo "test.sh: /dev/fuse cannot be opened: the tests that mount will be skipped (as root: chmod 666 /dev/fuse)" >&2
fi

exec cargo test "$@"
