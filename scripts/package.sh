#!/bin/sh
# Builds packages of this version in target/packages and prints their sizes.
#
# usage: scripts/package.sh deb|musl|wheel|all|image|source|recipes|chart|sbom|sums|notes
#
#   deb     tilefs_VERSION-1_ARCHITECTURE.deb for Debian and Ubuntu, with the C library of this machine or a newer one
#   musl    tilefs-VERSION-MACHINE-linux-musl.tar.gz: a static program with man pages and completions; and the
#           folder image for packaging/Dockerfile, with this machine's certificates
#   wheel   tilefs-VERSION-cp39-abi3-PLATFORM.whl: the Python package with the program, for Python 3.9 and newer, with
#           glibc 2.17 (manylinux2014) or newer. `wheel aarch64` and `wheel x86_64` also build for the other processor
#   all     these three
#
# and for a release:
#
#   image   tilefs-VERSION-image-MACHINE.tar.gz: the image of packaging/Dockerfile, for docker load; after musl
#   source  tilefs-VERSION.tar.gz: the files of the last commit
#   recipes recipes/: those in packaging/ with the checksum of that archive; after source
#   chart   tilefs-chart-VERSION.tgz: packaging/helm/tilefs
#   sbom    tilefs-VERSION-MACHINE.cdx.json: all crates that are linked into the program, as CycloneDX
#   sums    SHA256SUMS of all packages that exist
#   notes   release-notes.md: what CHANGELOG.md says of this version, and how to install the files of the release
set -eu
cd "$(dirname "$0")/.."

fail() {
    echo "package.sh: $*" >&2
    exit 1
}

made=target/packages
maturin_version=1.16.0
zig_version=0.17.1
# The oldest C library that the wheels work with, which is that of CentOS 7.
wheel_libc=2.17
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
    machine=${1:-$(uname -m)}
    target=$machine-unknown-linux-gnu
    case $machine in
        x86_64 | aarch64) ;;
        *) fail "there are no wheels for the processor $machine, only for x86_64 and aarch64" ;;
    esac
    [ -d "$(rustc --print sysroot)/lib/rustlib/$target/lib" ] ||
        fail "Rust's library for $machine is missing; install it with: rustup target add $target"
    # The tools have versions of their own, so that the same source gives the same files.
    tools=$PWD/$made/wheel-tools
    wanted="maturin==$maturin_version ziglang==$zig_version"
    [ "$(cat "$tools/wanted" 2>/dev/null)" = "$wanted" ] || {
        python3 -m venv --clear "$tools" || fail "python3 makes no virtual environment; install the package python3-venv"
        # shellcheck disable=SC2086 # a list of packages
        "$tools/bin/python" -m pip install --quiet --disable-pip-version-check $wanted ||
            fail "these packages cannot be installed from PyPI: $wanted"
        echo "$wanted" > "$tools/wanted"
    }
    # Zig has the interfaces of older C libraries, of both processors. maturin refuses what needs a newer one.
    maturin_with_zig() {
        PATH=$tools/bin:$PATH "$tools/bin/maturin" build --release --locked --strip --zig --target "$target" \
            --compatibility "manylinux_$(echo "$wheel_libc" | tr . _)" "$@"
    }
    maturin_with_zig --manifest-path Cargo.toml --bindings bin --out "$made/wheel-program"
    # pip installs the files in this folder as commands.
    scripts=python/data/scripts
    rm -rf python/data
    mkdir -p "$scripts"
    cp "$built/$target/release/tilefs" "$scripts/"
    rm -f "$made"/tilefs-*_"$machine".whl
    packages=$PWD/$made
    (cd python && maturin_with_zig --out "$packages")
    ls -l "$made"/tilefs-*_"$machine".whl
    echo "package.sh: this wheel is for $machine, glibc $wheel_libc and newer, and Python 3.9 and newer"
}

make_image() {
    [ -d "$made/image/root" ] || fail "there is no folder for the image; make it with scripts/package.sh musl"
    archive=$made/tilefs-$version-image-$(uname -m).tar
    rm -f "$archive"
    if command -v docker >/dev/null 2>&1; then
        docker build --quiet -f packaging/Dockerfile -t "ghcr.io/tilefs/tilefs:$version" "$made/image"
        docker save -o "$archive" "ghcr.io/tilefs/tilefs:$version"
    elif command -v buildah >/dev/null 2>&1; then
        buildah build --quiet -f packaging/Dockerfile -t "ghcr.io/tilefs/tilefs:$version" "$made/image"
        buildah push --quiet "ghcr.io/tilefs/tilefs:$version" "docker-archive:$archive:ghcr.io/tilefs/tilefs:$version"
    else
        fail "neither docker nor buildah is here; install one with: sudo apt-get install buildah"
    fi
    gzip -9nf "$archive"
    ls -l "$archive.gz"
}

source_archive=$made/tilefs-$version.tar.gz

make_source() {
    [ -z "$(git status --porcelain)" ] || echo "package.sh: the archive has the last commit, without the changes that are here" >&2
    git archive --format=tar --prefix="tilefs-$version/" HEAD | gzip -9n > "$source_archive"
    ls -l "$source_archive"
}

make_recipes() {
    [ -s "$source_archive" ] || fail "there is no source archive; make it with scripts/package.sh source"
    checksum=$(sha256sum "$source_archive" | cut -d ' ' -f 1)
    rm -rf "$made/recipes"
    for recipe in conda/recipe.yaml homebrew/tilefs.rb nix/package.nix spack/package.py aur/PKGBUILD aur/.SRCINFO; do
        grep -q @SHA256@ "packaging/$recipe" || fail "packaging/$recipe has no place for the checksum"
        mkdir -p "$made/recipes/$(dirname "$recipe")"
        sed "s/@SHA256@/$checksum/" "packaging/$recipe" > "$made/recipes/$recipe"
    done
    # Outside of this repository, Nix expects the lock file next to the recipe.
    cp Cargo.lock "$made/recipes/nix/"
    find "$made/recipes" -type f
}

make_chart() {
    # Arranged as by `helm package`, but reproducible. Helm's name for it, `tilefs-VERSION.tgz`, would differ from that
    # of the source archive in two letters only.
    tar --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$day" -C packaging/helm -cf - tilefs |
        gzip -9n > "$made/tilefs-chart-$version.tgz"
    ls -l "$made/tilefs-chart-$version.tgz"
}

make_sbom() {
    bill=$made/tilefs-$version-$(uname -m).cdx.json
    python3 scripts/sbom.py "$(uname -m)-unknown-linux-musl" "$day" > "$bill.part" || fail "scripts/sbom.py needs Python 3.11 and the crates of Cargo.lock"
    mv "$bill.part" "$bill"
    ls -l "$bill"
}

make_sums() {
    (
        cd "$made"
        rm -f SHA256SUMS
        set --
        for package in tilefs_"$version"-1_*.deb "tilefs-$version"*.tar.gz "tilefs-$version"-*.whl "tilefs-chart-$version.tgz" \
            "tilefs-$version"-*.cdx.json; do
            [ ! -f "$package" ] || set -- "$@" "$package"
        done
        [ $# -gt 0 ] || fail "there are no packages of version $version"
        sha256sum "$@" > SHA256SUMS
    )
    cat "$made/SHA256SUMS"
}

make_notes() {
    {
        awk -v heading="## $version - " '/^## / { here = index($0, heading) == 1; next } here' CHANGELOG.md
        sed "s/VERSION/$version/g" packaging/release.md
    } > "$made/release-notes.md"
    cat "$made/release-notes.md"
}

mkdir -p "$made"
case ${1:-} in
    deb) make_deb ;;
    musl) make_musl ;;
    wheel) make_wheel "${2:-}" ;;
    all) make_deb; make_musl; make_wheel ;;
    image) make_image ;;
    source) make_source ;;
    recipes) make_recipes ;;
    chart) make_chart ;;
    sbom) make_sbom ;;
    sums) make_sums ;;
    notes) make_notes ;;
    *) fail "say which package: deb, musl, wheel or all; or image, source, recipes, chart, sbom, sums or notes" ;;
esac
