#!/bin/sh
# Builds packages of this version in target/packages and prints their sizes.
#
# usage: scripts/package.sh deb|musl|wheel|all
#
#   deb     tilefs_VERSION-1_ARCHITECTURE.deb for Debian and Ubuntu, with the C library of this machine or a newer one
#   musl    tilefs-VERSION-MACHINE-linux-musl.tar.gz: a static program with man pages and completions; and the
#           folder image for packaging/Dockerfile, with this machine's certificates
#   wheel   tilefs-VERSION-cp39-abi3-PLATFORM.whl: the Python package with the program, for Python 3.9 and newer, with the
#           C library that PLATFORM names or a newer one
set -eu
cd "$(dirname "$0")/.."

fail() {
    echo "package.sh: $*" >&2
    exit 1
}

made=target/packages
maturin_version=1.16.0
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
# The date of the version, not of the packaging, so that the same source gives the same files.
day=$(git log -1 --format=%ct 2>/dev/null || date +%s)
built=$(cargo metadata --format-version 1 --no-deps --offline 2>/dev/null | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')

# The program itself writes the completions for three shells.
completions() {
    mkdir -p "$2"
    "$1" completions bash > "$2/tilefs.bash"
    "$1" completions zsh > "$2/_tilefs"
    "$1" completions fish > "$2/tilefs.fish"
}

make_deb() {
    command -v cargo-deb >/dev/null 2>&1 || fail "cargo-deb is missing; install it with: cargo install --locked cargo-deb"
    cargo build --release --locked --bin tilefs
    # The files that [package.metadata.deb] in Cargo.toml names.
    stage=$made/deb
    rm -rf "$stage"
    mkdir -p "$stage/bin" "$stage/sbin"
    completions "$built/release/tilefs" "$stage/completions"
    cp "$built/release/tilefs" "$stage/bin/"
    # mount(8) looks for the helper of a filesystem type under this name, and man(1) for its page.
    ln -s ../bin/tilefs "$stage/sbin/mount.fuse.tilefs"
    echo ".so man1/tilefs.1" > "$stage/mount.fuse.tilefs.8"
    maintainer=$(sed -n 's/^maintainer = "\(.*\)"$/\1/p' Cargo.toml)
    {
        printf 'tilefs (%s-1) unstable; urgency=medium\n\n' "$version"
        printf '  * Release %s; /usr/share/doc/tilefs/changelog.gz says what is new.\n\n' "$version"
        printf ' -- %s  %s\n' "$maintainer" "$(LC_ALL=C date -u -R -d "@$day")"
    } > "$stage/changelog"
    gzip -9nc CHANGELOG.md > "$stage/changelog.gz"
    cargo deb --locked --no-build --strip --quiet --output "$made/"
    ls -l "$made"/tilefs_"$version"-1_*.deb
}

make_musl() {
    machine=$(uname -m)
    target=$machine-unknown-linux-musl
    [ -d "$(rustc --print sysroot)/lib/rustlib/$target/lib" ] ||
        fail "Rust's library for musl is missing; install it with: rustup target add $target"
    certificates=etc/ssl/certs/ca-certificates.crt
    [ -s "/$certificates" ] || fail "there are no certificates for the image; install them with: sudo apt-get install ca-certificates"
    command -v musl-gcc >/dev/null 2>&1 || fail "musl-gcc is missing; install it with: sudo apt-get install musl-tools"
    cargo build --release --locked --bin tilefs --target "$target"
    name=tilefs-$version-$machine-linux-musl
    rm -rf "${made:?}/$name" "$made/image"
    mkdir -p "$made/$name/man"
    strip -o "$made/$name/tilefs" "$built/$target/release/tilefs"
    completions "$made/$name/tilefs" "$made/$name/completions"
    cp man/tilefs.1 man/tilefs-paths.7 "$made/$name/man/"
    cp LICENSE README.md CHANGELOG.md packaging/tilefs@.service "$made/$name/"
    tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$day" -C "$made" -cf - "$name" |
        gzip -9n > "$made/$name.tar.gz"
    root=$made/image/root
    mkdir -p "$root/usr/bin" "$root/etc/ssl/certs"
    mkdir -m 1777 "$root/tmp"
    cp "$made/$name/tilefs" "$root/usr/bin/"
    cp "/$certificates" "$root/$certificates"
    rm -r "${made:?}/$name"
    ls -l "$root/usr/bin/tilefs" "$made/$name.tar.gz"
}

make_wheel() {
    # With a version of its own, so that the same source gives the same files.
    maturin=$made/maturin
    "$maturin/bin/maturin" --version 2>/dev/null | grep -qx "maturin $maturin_version" || {
        python3 -m venv --clear "$maturin" || fail "python3 makes no virtual environment; install the package python3-venv"
        "$maturin/bin/python" -m pip install --quiet --disable-pip-version-check "maturin==$maturin_version" ||
            fail "maturin $maturin_version cannot be installed from PyPI"
    }
    cargo build --release --locked --bin tilefs
    # What is in this folder is installed as commands.
    scripts=python/data/scripts
    rm -rf python/data
    mkdir -p "$scripts"
    strip -o "$scripts/tilefs" "$built/release/tilefs"
    rm -f "$made"/tilefs-*.whl
    packages=$PWD/$made
    (cd python && "../$maturin/bin/maturin" build --quiet --release --locked --out "$packages")
    ls -l "$made"/tilefs-*.whl
}

mkdir -p "$made"
case ${1:-} in
    deb) make_deb ;;
    musl) make_musl ;;
    wheel) make_wheel ;;
    all) make_deb; make_musl; make_wheel ;;
    *) fail "say which package: deb, musl, wheel or all" ;;
esac
