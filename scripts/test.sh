#!/bin/bash
# Runs all tests and prints a table of what ran and what was skipped. First it installs what this user may install: what
# the tests need (fuse3), and the programs and packages with which tests open and compare files (GDAL, R, NumPy, tiledb
# ...). It prints what it could not install; tests that lack a tool print SKIPPED and its name.
#
#   scripts/test.sh [options of cargo test] [-- arguments of every test program, such as a part of the names of tests]
#
#   TILEFS_TEST_TOOLS=no    do not install those programs
#   TILEFS_TEST_PROGRAMS=N  how many test programs run at the same time (one more than there are processors)
#   TILEFS_REQUIRE=all      a skipped test is a failure; or a list of the required tools (tests/support/skip.rs), such as
#                           all,-peers
#
# Test programs run side by side, because many of their tests wait for interpreters, browsers and mounts. Unit tests need
# no tools, so each program of them starts when cargo has linked it, while others are compiled and the tools are
# installed. All programs run, even if one fails.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
    echo "test.sh: $*" >&2
    exit 1
}

command -v cargo >/dev/null 2>&1 || fail "cargo is missing; install Rust as https://rustup.rs says"

cargo_options=()
# Options that select targets select no documentation.
has_documentation=yes
while [ $# -gt 0 ]; do
    [ "$1" = -- ] && break
    case $1 in
    --lib | --bin* | --test* | --bench* | --example* | --all-targets) has_documentation=no ;;
    esac
    # All programs run in any case.
    [ "$1" = --no-fail-fast ] || cargo_options+=("$1")
    shift
done
[ $# = 0 ] || shift
test_arguments=("$@")

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

# Each job is a process group of its own, which can be ended as a whole, and which interrupts reach as usual.
set -m
work=$(mktemp -d)
log=$work/log
: >"$log"
end() {
    trap - EXIT
    for job in $(jobs -p); do kill -- "-$job" 2>/dev/null || true; done
    rm -rf "$work"
}
trap end EXIT
trap 'exit 130' INT TERM

# Prints a file and keeps it for the table, in one piece, so that outputs of different programs do not mix.
tell() {
    (
        flock 9
        tee -a "$log" <"$1"
    ) 9>"$work/lock"
}

install_tools() {
    echo "   Preparing"
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
}

# Runs one test program, as cargo does: in the folder of its package, with the environment of .cargo/config.toml.
# Arguments: its name in the table, its file, the folder.
run_program() {
    echo "     Running $1 (${2#"$PWD"/})"
    cd "$3" && TILEFS_INDEX_DIR=none CARGO_MANIFEST_DIR=$3 "$2" ${test_arguments[@]+"${test_arguments[@]}"}
}

run_documentation() {
    cargo test --workspace --doc ${cargo_options[@]+"${cargo_options[@]}"}
}

# Runs a function with its arguments as a job, when one of the places for jobs is free. Prints its output at its end.
mkfifo "$work/places"
exec 4<>"$work/places"
start() {
    read -r -u 4
    {
        local output
        output=$(mktemp -p "$work")
        ("$@") >"$output" 2>&1 </dev/null || echo "${*:1:2}" >>"$work/failed"
        tell "$output"
        rm -f "$output"
        echo >&4
    } &
}
offer_places() {
    for ((place = 0; place < $1; place++)); do echo >&4; done
}

install_tools >"$work/tools" 2>&1 &
tools=$!
: >"$work/built"
{
    cargo test --workspace --no-run --message-format json-render-diagnostics ${cargo_options[@]+"${cargo_options[@]}"} >>"$work/built" ||
        echo "the build: some test programs did not run" >>"$work/failed"
    echo end >>"$work/built"
} &

# Reads what cargo built: unit tests start at once, one program after the other, and the others are kept for later.
offer_places 1
later=()
exec 3< <(exec tail -n +1 -f "$work/built" --pid=$$)
while IFS= read -r -u 3 line; do
    [ "$line" != end ] || break
    [[ $line =~ \"profile\":\{[^}]*\"test\":true && $line =~ \"executable\":\"([^\"]*)\" ]] || continue
    program=${BASH_REMATCH[1]}
    [[ $line =~ \"manifest_path\":\"([^\"]*)/Cargo.toml\" ]] && folder=${BASH_REMATCH[1]}
    [[ $line =~ \"src_path\":\"([^\"]*)\" ]] && source=${BASH_REMATCH[1]#"$folder"/}
    if [[ $line == *'"kind":["test"]'* ]]; then
        later+=("$source"$'\t'"$program"$'\t'"$folder")
    else
        start run_program "unittests $source" "$program" "$folder"
    fi
done
exec 3<&-

wait "$tools" || true
tell "$work/tools"
offer_places $((${TILEFS_TEST_PROGRAMS:-$(($(nproc) + 1))} - 1))
# Those that take longest come first, so that none of them is left alone at the end.
longest="tests/exports/ tests/python.rs tests/serve/ tests/program/ tests/hostile/ tests/tree/ tests/cloud/ tests/every_path/"
for first in $longest ""; do
    for entry in ${later[@]+"${later[@]}"}; do
        IFS=$'\t' read -r source program folder <<<"$entry"
        of=
        for name in $longest; do
            if [[ $source == "$name"* ]]; then of=$name; fi
        done
        if [ "$of" = "$first" ]; then start run_program "$source" "$program" "$folder"; fi
    done
    # Compiles, so it starts beside programs that wait.
    if [ "$first" = tests/serve/ ] && [ "$has_documentation" = yes ]; then start run_documentation; fi
done
# Whoever waits for all places waits for all jobs.
for ((place = 0; place < ${TILEFS_TEST_PROGRAMS:-$(($(nproc) + 1))}; place++)); do read -r -u 4; done

awk -f scripts/test_table.awk "$log"
status=0
if [ -s "$work/failed" ]; then
    sed 's/^/FAILED: /' "$work/failed"
    status=1
fi
# With TILEFS_REQUIRE, the tests that SEMANTICS.md names must have passed, too.
if [ -n "${TILEFS_REQUIRE:-}" ]; then
    awk -f scripts/promised_tests.awk docs/SEMANTICS.md "$log" || status=1
fi
exit "$status"
