#!/bin/sh
# Builds tilefs, mounts the sample array of this repository, reads from it with ls, od and dd, and unmounts.
set -eu
cd "$(dirname "$0")/.."

array=tests/fixtures/demo   # temp[y, x] = 20 - y/10 + x/100, 100 rows of 200 columns, float32
y=42 x=17                   # the cell to read

fail() {
    echo "demo.sh: $*" >&2
    exit 1
}

# Shows a command and runs it.
run() {
    echo
    echo "\$ $*"
    "$@"
}

command -v cargo >/dev/null 2>&1 || fail "cargo is missing; install Rust as https://rustup.rs says"
missing=
command -v cc >/dev/null 2>&1 || missing="$missing build-essential"
# Root can mount without the package fuse3.
[ "$(id -u)" = 0 ] || command -v fusermount3 >/dev/null 2>&1 || missing="$missing fuse3"
if [ -n "$missing" ]; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        apt-get update -qq
        # shellcheck disable=SC2086 # a list of packages
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
    else
        fail "more packages are needed; install them with: sudo apt-get install$missing"
    fi
fi

scripts/build_page.sh || echo "demo.sh: the page of tilefs serve could not be built; it will be a plain one" >&2
cargo build --release
target=${CARGO_TARGET_DIR:-target}
PATH=$(cd "$target/release" && pwd):$PATH

work=$(mktemp -d)
mnt=$work/mnt
row=$work/row.f32
mkdir "$mnt"
cleanup() {
    # After success there is nothing left to unmount.
    tilefs umount --lazy "$mnt" 2>/dev/null || true
    rm -f "$row"
    rmdir "$mnt" "$work"
}
trap cleanup EXIT
trap 'exit 1' HUP INT TERM

run tilefs mount "$array" "$mnt"
run ls -l "$mnt"

echo
echo "The value of row $y and column $x, which is 20 - $y/10 + $x/100:"
run od -A d -t f4 -j $(( (y * 200 + x) * 4 )) -N 4 "$mnt/temp.f32"

echo
echo "Row $y as a block of its own, and its first values:"
run dd if="$mnt/temp.f32" of="$row" bs=800 skip=$y count=1
run od -A d -t f4 -N 32 "$row"

run tilefs umount "$mnt"
echo
echo "Done: $mnt is unmounted. Try your own: $target/release/tilefs mount ARRAY FOLDER"
