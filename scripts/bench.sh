#!/bin/sh
# Measures tilefs beside libtiledb, alternating between the two in one run, and prints a table per section.
#
# usage: scripts/bench.sh [SECTION...]        dense open sparse paths formats single_cell cloud scale versions; the first
#                                           four by default
#
#   TILEFS_BENCH_DIR   where the data are made and kept (default target/bench); they take a few GB
#   TILEFS_BENCH_RUNS  how often each side is timed (default 5)
#   TILEFS             the binary to measure (default: target/release/tilefs, built first)
#   TILEFS_OLD         an older binary, which the section `versions` compares it with
#
# The section `scale` has settings of its own: see the head of scripts/bench/scale.py.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
export TILEFS_BENCH_DIR="${TILEFS_BENCH_DIR:-$here/target/bench}"
export TILEFS_BENCH_RUNS="${TILEFS_BENCH_RUNS:-5}"

for section in "$@"; do
    case $section in
        dense | open | sparse | paths | formats | single_cell | cloud | scale | versions) ;;
        *) echo "bench.sh: there is no section '$section'; there are dense, open, sparse, paths, formats, single_cell, cloud, scale and versions" >&2; exit 2 ;;
    esac
done

cargo build --release --quiet --bins --examples --manifest-path "$here/Cargo.toml"
built=$(cargo metadata --format-version 1 --no-deps --manifest-path "$here/Cargo.toml" |
    sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/release
TILEFS=$(realpath "${TILEFS:-$built/tilefs}")
# A mount that only copies from memory: the limit of any.
TILEFS_TOY=$built/examples/toy
export TILEFS TILEFS_TOY

mkdir -p "$TILEFS_BENCH_DIR"
venv="$TILEFS_BENCH_DIR/venv"
if [ ! -x "$venv/bin/python" ]; then
    python3 -m venv "$venv"
    grep -E '^(tiledb|numpy)==' "$here/scripts/requirements.txt" > "$venv/requirements.txt"
    "$venv/bin/python" -m pip install --quiet -r "$venv/requirements.txt"
fi
case " $* " in
    *" formats "*)
        # What opens them, in the versions that the tests have.
        "$venv/bin/python" -m pip install --quiet xarray zarr dask -c "$here/scripts/requirements.txt" ;;
esac
case " $* " in
    *" single_cell "*)
        "$venv/bin/python" -m pip install --quiet anndata tiledbsoma ;;
esac

cd "$here/scripts"
exec "$venv/bin/python" -m bench "$@"
