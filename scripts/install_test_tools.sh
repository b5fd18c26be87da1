#!/bin/sh
# Installs the programs that tests/export_tools opens our files with. Python packages go into .venv at the
# root of the repository, programs come from apt when this runs as root on a Debian system. What cannot be
# installed is skipped aloud, here and by the tests.
set -u
cd "$(dirname "$0")/.." || exit 1

python=.venv/bin/python
[ -x "$python" ] || python3 -m venv .venv || exit 1
for package in numpy scipy netCDF4 xarray pyarrow pandas polars duckdb SimpleITK rasterio tiledb; do
    "$python" -c "import $package" 2>/dev/null ||
        "$python" -m pip install --quiet --disable-pip-version-check "$package" ||
        echo "SKIPPED: pip cannot install $package" >&2
done

packages=
want() { command -v "$1" >/dev/null 2>&1 || packages="$packages $2"; }
want gdalinfo gdal-bin
want ncdump netcdf-bin
want Rscript r-base-core
want gfortran gfortran
want convert imagemagick
want awk mawk
want sqlite3 sqlite3
! command -v Rscript >/dev/null 2>&1 || Rscript -e 'quit(status = !requireNamespace("data.table", quietly = TRUE))' 2>/dev/null ||
    packages="$packages r-cran-data.table"
want mandoc mandoc
if [ -n "$packages" ]; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        apt-get update -qq
        # One by one: a package that is missing must not keep the others away.
        for package in $packages; do
            DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >/dev/null ||
                echo "SKIPPED: apt cannot install $package" >&2
        done
    else
        echo "SKIPPED, needs root and apt:$packages" >&2
    fi
fi
