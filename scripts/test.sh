#!/bin/bash
# Runs all tests and prints a table of what ran and what was skipped. First it installs what this user may install: what
# the tests need (fuse3), and the programs and packages with which tests open and compare files (GDAL, R, NumPy, tiledb
# ...). It prints what it could not install; tests that lack a tool print SKIPPED and its name.
#
#   scripts/test.sh [arguments of cargo test]
#
#   TILEFS_TEST_TOOLS=no    do not install those programs
#   TILEFS_REQUIRE=all      a skipped test is a failure; or a list of the required tools (tests/support/skip.rs), such as
#                           all,-peers
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
    echo "test.sh: $*" >&2
    exit 1
}

command -v cargo >/dev/null 2>&1 || fail "cargo is missing; install Rust as https://rustup.rs says"

missing=
command -v cc >/dev/null 2>&1 || missing="$missing build-essential"
# Root does not need fuse3, but some tests mount as an ordinary user.
command -v fusermount3 >/dev/null 2>&1 || missing="$missing fuse3"
if [ -n "$missing" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    # shellcheck disable=SC2086 # a list of packages
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing; } >/dev/null || true
fi
command -v cc >/dev/null 2>&1 || fail "nothing can be built without a C compiler; install it with: sudo apt-get install build-essential"
here=$(rustc -vV | sed -n 's/^host: //p')
cargo fetch --locked --quiet --target "$here" 2>/dev/null || cargo fetch --locked --quiet --target "$here" --offline 2>/dev/null ||
    fail "crates of Cargo.lock are not on this machine and cannot be fetched; run cargo fetch --locked with a network once"

log=$(mktemp)
trap 'rm -f "$log"' EXIT

{
    if [ "${TILEFS_TEST_TOOLS:-yes}" = no ]; then
        echo "SKIPPED: installing the programs that the files are opened with (TILEFS_TEST_TOOLS=no)"
    else
        scripts/install_test_tools.sh || echo "SKIPPED: the programs that the files are opened with"
    fi
    if ! command -v fusermount3 >/dev/null 2>&1; then
        echo "SKIPPED: what mounts as an ordinary user, fusermount3 is missing (sudo apt-get install fuse3)"
    fi
    if [ ! -e /dev/fuse ]; then
        echo "SKIPPED: what mounts, /dev/fuse is missing (as root, try: modprobe fuse)"
    elif ! { : <>/dev/fuse; } 2>/dev/null; then
        echo "SKIPPED: what mounts, /dev/fuse cannot be opened (as root: chmod 666 /dev/fuse)"
    fi
} 2>&1 | tee -a "$log"

status=0
cargo test --workspace "$@" 2>&1 | tee -a "$log" || status=$?
awk -f scripts/test_table.awk "$log"
# With TILEFS_REQUIRE, the tests that SEMANTICS.md names must have passed, too.
if [ -n "${TILEFS_REQUIRE:-}" ]; then
    awk -f scripts/promised_tests.awk docs/SEMANTICS.md "$log" || status=1
fi
exit "$status"
