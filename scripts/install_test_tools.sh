#!/bin/sh
# Installs the programs with which tests/exports opens files and tests/program reads mounts, and TileDB-Py, with
# which tests compare arrays that have no recorded values. Python packages go into .venv at the root of the repository,
# in the versions of scripts/requirements.txt. Programs come from apt if this runs as root on a Debian system. This
# script prints SKIPPED for each tool that it cannot install, and so does each test that needs it.
set -u
cd "$(dirname "$0")/.." || exit 1

# Prints the lines of requirements.txt that are not installed in that version.
missing_packages() {
    installed=$("$python" -m pip list --format=freeze --disable-pip-version-check 2>/dev/null)
    sed 's/ *#.*//; /^$/d' scripts/requirements.txt | while read -r requirement; do
        printf '%s\n' "$installed" | grep -qixF "$requirement" || echo "$requirement"
    done
}

can_apt() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1
}

python=.venv/bin/python
# Without the package python3-venv, the environment exists but has no pip.
has_pip() {
    [ -x "$python" ] && "$python" -m pip --version >/dev/null 2>&1
}
make_environment() {
    python3 -m venv --clear .venv >/dev/null 2>&1 && return
    rm -rf .venv
    return 1
}
if ! command -v python3 >/dev/null 2>&1; then
    echo "SKIPPED: Python packages, there is no python3" >&2
elif ! has_pip && ! make_environment; then
    can_apt && apt-get update -qq && apt-get install -y -qq --no-install-recommends python3-venv >/dev/null
    make_environment || echo "SKIPPED: Python packages, python3 makes no virtual environment (package python3-venv)" >&2
fi
if has_pip && [ -n "$(missing_packages)" ]; then
    pip="$python -m pip install --quiet --disable-pip-version-check --retries 1 --timeout 15"
    if ! $pip -r scripts/requirements.txt 2>/dev/null; then
        # If pip cannot install all packages together, install them one by one, so that a missing one does not prevent
        # the others. If the first two both fail, pip has no index.
        failures=0
        successes=0
        for requirement in $(missing_packages); do
            if $pip "$requirement" 2>/dev/null; then
                successes=$((successes + 1))
                continue
            fi
            failures=$((failures + 1))
            if [ $failures = 2 ] && [ $successes = 0 ]; then
                echo "SKIPPED: Python packages, pip reaches no index ($(missing_packages | wc -l) of scripts/requirements.txt are missing)" >&2
                break
            fi
            echo "SKIPPED: pip cannot install $requirement" >&2
        done
    fi
fi

# The server for Azure blobs is an npm package.
azurite=3.37.0
if [ -d .venv ] && [ ! -x .venv/node_modules/.bin/azurite-blob ]; then
    if command -v npm >/dev/null 2>&1; then
        npm install --prefix .venv --no-audit --no-fund --silent --fetch-retries 1 azurite@$azurite || echo "SKIPPED: npm cannot install azurite" >&2
    else
        echo "SKIPPED: azurite, there is no npm" >&2
    fi
fi

# What tests open the page of `tilefs serve` with.
if ! [ web/node_modules/.package-lock.json -nt web/package-lock.json ]; then
    (cd web && npm ci --no-audit --no-fund --silent) || echo "SKIPPED: npm cannot install the packages of web/" >&2
fi

packages=
want() { command -v "$1" >/dev/null 2>&1 || packages="$packages $2"; }
want gdalinfo gdal-bin
want chromium chromium
[ -d /usr/share/fonts/truetype/dejavu ] || packages="$packages fonts-dejavu-core"
want ncdump netcdf-bin
want h5dump hdf5-tools
want ncrcat nco
want cdo cdo
want Rscript r-base-core
want gfortran gfortran
# Look for `identify`, because other packages have a program called `convert`, too.
want identify imagemagick
# The four versions of awk, in which commands of README.txt print the same.
want mawk mawk
want gawk gawk
want original-awk original-awk
want busybox busybox
want sqlite3 sqlite3
Rscript -e 'quit(status = !requireNamespace("data.table", quietly = TRUE))' 2>/dev/null ||
    packages="$packages r-cran-data.table"
Rscript -e 'quit(status = !requireNamespace("Matrix", quietly = TRUE))' 2>/dev/null || packages="$packages r-cran-matrix"
Rscript -e 'quit(status = !requireNamespace("rhdf5", quietly = TRUE))' 2>/dev/null || packages="$packages r-bioc-rhdf5"
# A free IDL, with the Astronomy Library.
want gdl gnudatalanguage
[ -e /usr/share/gnudatalanguage/astrolib/readfits.pro ] || packages="$packages gdl-astrolib"
want mandoc mandoc
want openssl openssl
want systemd-analyze systemd
want bcftools bcftools
want tabix tabix
want plink1.9 plink1.9
want plink2 plink2
/usr/bin/python3 -c 'import pysam' 2>/dev/null || packages="$packages python3-pysam"
want rsync rsync
# Counts the instructions of hot paths.
want valgrind valgrind
want curl curl
want rclone rclone
want mount.davfs davfs2
want cadaver cadaver
want nginx nginx-light
want gio libglib2.0-bin
want dbus-run-session dbus
[ -e /usr/lib/gvfs/gvfsd-dav ] || [ -e /usr/libexec/gvfsd-dav ] || packages="$packages gvfs gvfs-backends"
want smbclient smbclient
if [ ! -d /run/systemd/system ]; then
    want /usr/sbin/smbd samba
elif [ ! -x /usr/sbin/smbd ]; then
    echo "SKIPPED: samba, whose package would start a server here; install it if it may" >&2
fi
if [ -n "$packages" ]; then
    if can_apt; then
        apt-get update -qq
        install() { DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null; }
        # If apt cannot install all packages together, install them one by one, so that a missing one does not prevent
        # the others.
        # shellcheck disable=SC2086 # a list of packages
        install $packages 2>/dev/null || for package in $packages; do
            install "$package" || echo "SKIPPED: apt cannot install $package" >&2
        done
    else
        echo "SKIPPED: apt, which needs root, for$packages" >&2
    fi
fi
