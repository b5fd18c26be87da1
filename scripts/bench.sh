#!/bin/sh
# Compares the speed of tilefs with that of libtiledb. Alternates between the two in one run; prints a table per
# section.
#
# usage: scripts/bench.sh [SECTION...]        dense open sparse paths formats python single_cell cloud serve page
#                                           scale variants previews texts small versions
#                                           annotated datasets cluster; the first four by default
#
#   TILEFS_BENCH_DIR   folder for the generated data, a few GB (default target/bench)
#   TILEFS_BENCH_RUNS  runs of each program (default 5)
#   TILEFS             the binary to measure (default: target/release/tilefs, built first)
#   TILEFS_OLD         an older binary to compare with in the sections `versions` and `variants`
#
# The first lines of scripts/bench/scale.py list further settings for the section `scale`.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
export TILEFS_BENCH_DIR="${TILEFS_BENCH_DIR:-$here/target/bench}"
export TILEFS_BENCH_RUNS="${TILEFS_BENCH_RUNS:-5}"

for section in "$@"; do
    case $section in
        dense | open | sparse | paths | formats | python | single_cell | cloud | serve | page | scale | variants | previews | texts | small | versions | annotated | datasets | cluster) ;;
        *) echo "bench.sh: there is no section '$section'; there are dense, open, sparse, paths, formats, python, single_cell, cloud, serve, page, scale, variants, previews, texts, small, versions, annotated, datasets and cluster" >&2; exit 2 ;;
    esac
done

cargo build --release --quiet --bins --examples --manifest-path "$here/Cargo.toml"
built=$(cargo metadata --format-version 1 --no-deps --manifest-path "$here/Cargo.toml" |
    sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/release
TILEFS=$(realpath "${TILEFS:-$built/tilefs}")
# A mount that only copies from memory: the upper limit of any mount.
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
        # The readers of these formats, in the versions that the tests use.
        "$venv/bin/python" -m pip install --quiet xarray zarr dask -c "$here/scripts/requirements.txt" ;;
esac
case " $* " in
    *" python "* | *" texts "* | *" annotated "* | *" datasets "* | *" cluster "*)
        "$here/scripts/package.sh" wheel
        # TileDB-Py's own tables need an older pandas than the tests.
        "$venv/bin/python" -m pip install --quiet 'pandas<3'
        "$venv/bin/python" -m pip install --quiet pyarrow fsspec -c "$here/scripts/requirements.txt"
        "$venv/bin/python" -m pip install --quiet --force-reinstall --no-deps \
            "$here"/target/packages/tilefs-*_"$(uname -m)".whl ;;
esac
case " $* " in
    *" single_cell "* | *" annotated "*)
        "$venv/bin/python" -m pip install --quiet anndata tiledbsoma ;;
esac

case " $* " in
    *" cluster "*) "$venv/bin/python" -m pip install --quiet dask distributed -c "$here/scripts/requirements.txt" ;;
esac
case " $* " in
    *" datasets "*)
        # TileDB-CF works with older releases only.
        TILEFS_BENCH_CF="$TILEFS_BENCH_DIR/venv-cf/bin/python"
        [ -x "$TILEFS_BENCH_CF" ] || python3 -m venv "$TILEFS_BENCH_DIR/venv-cf"
        "$TILEFS_BENCH_CF" -m pip install --quiet tiledb-cf==0.9.1 tiledb==0.33.6 'numpy<2.3' xarray==2025.1.2 'zarr<3.1' fsspec
        "$TILEFS_BENCH_CF" -m pip install --quiet --force-reinstall --no-deps \
            "$here"/target/packages/tilefs-*_"$(uname -m)".whl
        export TILEFS_BENCH_CF ;;
esac

cd "$here/scripts"
exec "$venv/bin/python" -m bench "$@"
