#!/bin/bash
# Installs the packages that scripts/package.sh built, mounts the sample array with them, and compares its values. Does
# not change this machine: installs the .deb in an overlay over the machine's files, the static program in an empty
# folder, the image in a buildah container, and the wheel in a virtual environment for each Python. Needs root.
#
# usage: scripts/test_packages.sh [deb|musl|image|wheel]...      default: all packages that exist
#
# The wheels are also installed in the systems in the folders that TILEFS_SYSTEMS names, in this machine's processor or,
# if the kernel runs it by QEMU, in another one. To make such a folder:
# debootstrap --arch=arm64 --variant=minbase --include=python3,python3-venv bullseye FOLDER
# shellcheck disable=SC2016 # commands that run elsewhere are expanded there
set -euo pipefail
cd "$(dirname "$0")/.."

made=$PWD/target/packages
array=$PWD/tests/fixtures/demo
unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT
tar --zstd -xf tests/fixtures/arrays.tar.zst -C "$unpacked" expected/demo/full
values=$unpacked/expected/demo/full
most=$((12 << 20))

fail() {
    echo "test_packages.sh: $*" >&2
    exit 1
}

skipped() {
    echo "SKIPPED: $*" >&2
}

# Compares the values below a mount point with those that libtiledb read.
compare() {
    cmp "$1/temp.f32" "$values/00_temp.bin"
    cmp "$1/cell.i32" "$values/01_cell.bin"
    cmp -n 800 "$1/slice/0,0..199/temp.f32" "$values/00_temp.bin"
}

# Runs in a mount namespace, so mounts end with the script.
test_deb() {
    package=$(ls "$made"/tilefs_*.deb)
    [ "$(wc -l <<<"$package")" = 1 ] || fail "more than one .deb is in $made"
    if command -v lintian >/dev/null; then
        lintian --allow-root --fail-on error --tag-display-limit 0 "$package" ||
            fail "lintian finds errors in $package"
    else
        skipped "lintian is missing"
    fi
    work=$(mktemp -d)
    mount -t tmpfs none "$work"
    mkdir "$work/upper" "$work/work" "$work/root"
    mount -t overlay overlay -o "lowerdir=/,upperdir=$work/upper,workdir=$work/work" "$work/root" ||
        { skipped "the .deb, this kernel makes no overlay"; return; }
    for folder in dev proc sys; do mount --rbind /$folder "$work/root/$folder"; done
    mkdir -p "$work/root/run/test/mnt" "$work/root/run/test/dpkg"
    cp -r "$package" "$array" "$work/root/run/test/"
    if ! chroot "$work/root" /bin/sh -c 'command -v fusermount3 >/dev/null'; then
        chroot "$work/root" apt-get install -y -qq --no-install-recommends fuse3 >/dev/null
    fi
    rm -f "$work/root/sbin/mount.fuse.tilefs"
    chroot "$work/root" dpkg -i "/run/test/$(basename "$package")"
    inside() { chroot "$work/root" /bin/sh -ec "cd /run/test; $1"; }
    inside 'dpkg -s tilefs | grep -q "^Depends: .*fuse3"'
    inside 'tilefs --version; test -x /usr/bin/tilefs'
    inside 'zcat /usr/share/man/man1/tilefs.1.gz | cmp - '"$PWD"'/man/tilefs.1'
    inside 'test -e /usr/share/man/man7/tilefs-paths.7.gz; ! command -v man >/dev/null || man -w tilefs tilefs-paths mount.fuse.tilefs'
    inside 'bash -c ". /usr/share/bash-completion/completions/tilefs; complete -p tilefs"'

    # Mount with the command, with mount(8), and with fstab.
    inside 'tilefs mount demo mnt'
    compare "$work/root/run/test/mnt"
    inside 'tilefs umount mnt; mount -t fuse.tilefs /run/test/demo /run/test/mnt -o ro,allow_other,nofail'
    compare "$work/root/run/test/mnt"
    inside 'umount mnt; echo "/run/test/demo /run/test/mnt fuse.tilefs ro,noauto,x-systemd.automount,_netdev 0 0" > fstab; mount -T fstab /run/test/mnt'
    compare "$work/root/run/test/mnt"
    inside 'umount mnt'
    # Mount as an ordinary user with fusermount3. The device has the permissions that udev sets.
    mknod -m 666 "$work/fuse" c 10 229
    if mount --bind "$work/fuse" "$work/root/dev/fuse"; then
        inside 'mkdir home; mv demo home/; mkdir home/mnt; chown -R nobody home; cd home
            setpriv --reuid=65534 --regid=65534 --clear-groups tilefs mount demo mnt
            setpriv --reuid=65534 --regid=65534 --clear-groups cmp mnt/temp.f32 '"$values/00_temp.bin"'
            setpriv --reuid=65534 --regid=65534 --clear-groups tilefs umount mnt; cd ..; mv home/demo .'
    else
        skipped "an ordinary user with the .deb, who cannot be given /dev/fuse"
    fi
    # systemd does not run here, but it can verify the unit of the service.
    if command -v systemd-analyze >/dev/null; then
        inside 'mkdir -p /etc/tilefs; echo ARRAY=/run/test/demo > /etc/tilefs/demo.conf
            said=$(systemd-analyze verify tilefs@demo.service 2>&1 | grep "tilefs@" || true); test -z "$said" || { echo "$said" >&2; exit 1; }'
    else
        skipped "systemd-analyze is missing"
    fi
    inside 'dpkg -L tilefs > files; dpkg -r tilefs; while read -r file; do test -d "$file" || ! test -e "$file"; done < files'
    echo "the .deb: installed, mounted, removed"
}

test_musl() {
    archive=$(ls "$made"/tilefs-*-linux-musl.tar.gz)
    [ "$(wc -l <<<"$archive")" = 1 ] || fail "more than one tar.gz is in $made"
    root=$(mktemp -d)
    mount -t tmpfs none "$root"
    tar -C "$root" --strip-components=1 -xzf "$archive"
    for file in tilefs man/tilefs.1 man/tilefs-paths.7 completions/tilefs.bash completions/_tilefs completions/tilefs.fish LICENSE; do
        [ -s "$root/$file" ] || fail "$archive has no $file"
    done
    cmp "$root/tilefs" "$made/image/root/usr/bin/tilefs"
    size=$(stat -c %s "$root/tilefs")
    [ "$size" -lt $most ] || fail "the static program has $size bytes, more than $most"
    ! readelf --program-headers "$root/tilefs" | grep -q INTERP || fail "the static program asks for a loader"
    mkdir "$root/tmp"
    mount_alone "$root" /tilefs
    container=$(scripts/test_container.sh "$root/tilefs" "$array" temp.f32 "$values/00_temp.bin" 2>&1) ||
        { [ $? = 77 ] && skipped "the static program in a container of an ordinary user: $container"; } ||
        fail "the static program in a container of an ordinary user: $container"
    echo "the static program: $size bytes, mounted where there is nothing else"
}

# Mounts with a program in a root folder that has only the program, the device and an array.
mount_alone() {
    mkdir -p "$1/dev" "$1/proc" "$1/array" "$1/mnt"
    touch "$1/dev/fuse" "$1/dev/null"
    for device in fuse null; do mount --bind "/dev/$device" "$1/dev/$device"; done
    mount -t proc proc "$1/proc"
    mount --bind "$array" "$1/array"
    chroot "$1" "$2" mount /array /mnt
    compare "$1/mnt"
    chroot "$1" "$2" umount /mnt
    chroot "$1" "$2" verify /array > /dev/null
}

test_image() {
    command -v buildah >/dev/null || { skipped "the image, buildah is missing"; return; }
    work=$(mktemp -d)
    mount -t tmpfs none "$work"
    with() { buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs "$@"; }
    with build --isolation chroot --quiet -f packaging/Dockerfile -t tilefs "$made/image" > /dev/null
    container=$(with from tilefs)
    program=$(with inspect --format '{{index .OCIv1.Config.Entrypoint 0}}' "$container")
    root=$(with mount "$container")
    [ "$(stat -c %a "$root/tmp")" = 1777 ] || fail "nobody can write to /tmp of the image"
    grep -q "BEGIN CERTIFICATE" "$root/etc/ssl/certs/ca-certificates.crt" || fail "the image has no certificates"
    with run --isolation chroot -v "$array:/data:ro" "$container" -- "$program" cat /data temp.f32 | cmp - "$values/00_temp.bin"
    mount_alone "$root" "$program"
    echo "the image: $(du -sh --apparent-size "$root/usr" | cut -f 1), ran and mounted"
}

# Checks each wheel, and installs it for each Python since 3.9, from pyenv, from the system and from TILEFS_SYSTEMS.
test_wheel() {
    for wheel in "$made"/tilefs-*.whl; do
        machine=${wheel##*manylinux_2_17_}
        machine=${machine%.whl}
        case ${wheel##*/} in
            tilefs-*-cp39-abi3-manylinux2014_"$machine".manylinux_2_17_"$machine".whl) ;;
            *) fail "$wheel is not for Python 3.9 and glibc 2.17 and newer" ;;
        esac
        [ "$(ls "$made"/tilefs-*_"$machine".whl)" = "$wheel" ] || fail "more than one wheel for $machine is in $made"
        need_no_newer_glibc "$wheel" GLIBC_2.17
        pythons=
        if [ "$machine" = "$(uname -m)" ]; then
            for python in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3 /usr/bin/python3; do
                version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2]); sys.exit(sys.version_info < (3, 9))' 2>/dev/null) || continue
                case " $pythons " in *" $version "*) continue ;; esac
                environment=$(mktemp -d)
                "$python" -m venv "$environment" || { skipped "the wheel in Python $version, which makes no virtual environment"; continue; }
                "$environment/bin/python" -m pip install --quiet --disable-pip-version-check "${wheel}[fsspec]"
                "$environment/bin/python" python/tests/installed.py "$array" "$values/00_temp.bin"
                rm -rf "$environment"
                pythons="$pythons $version"
            done
        fi
        for system in ${TILEFS_SYSTEMS:-}; do
            [ "$machine" = "$(chroot "$system" uname -m)" ] || continue
            install_wheel_in "$system" "$wheel"
            pythons="$pythons $(basename "$system")"
        done
        if [ -n "$pythons" ]; then
            echo "the wheel for $machine: $(stat -c %s "$wheel") bytes, installed in Python$pythons"
        else
            skipped "the wheel for $machine, there is no Python from 3.9 on for it"
        fi
    done
}

# Fails if the module or the program of a wheel needs a version of glibc's symbols that is newer than a given one.
need_no_newer_glibc() {
    folder=$(mktemp -d)
    python3 -m zipfile -e "$1" "$folder"
    for file in "$folder"/tilefs/_tilefs.abi3.so "$folder"/tilefs-*.data/scripts/tilefs; do
        needed=$(readelf --version-info --wide "$file" | grep -o 'GLIBC_[0-9.]*' | sort --version-sort --unique)
        newest=$(printf '%s\n' "$needed" "$2" | sort --version-sort | tail -n 1)
        [ "$newest" = "$2" ] || fail "$(basename "$file") of $1 needs $newest"
    done
    rm -rf "$folder"
}

# Installs a wheel for the Python of a system that is in a folder, as debootstrap makes it.
install_wheel_in() {
    for folder in dev proc sys; do mount --rbind /$folder "$1/$folder"; done
    mount -t tmpfs none "$1/run"
    # pip asks the same servers as here.
    touch "$1/etc/resolv.conf"
    mount --bind "$(realpath /etc/resolv.conf)" "$1/etc/resolv.conf"
    mount --bind /etc/ssl/certs "$1/etc/ssl/certs"
    mkdir "$1/run/test"
    cp -r "$2" "$array" python/tests/installed.py "$values/00_temp.bin" "$1/run/test/"
    chroot "$1" /bin/sh -ec 'cd /run/test
        python3 -m venv environment
        environment/bin/python -m pip install --quiet --disable-pip-version-check "$(ls tilefs-*.whl)[fsspec]"
        environment/bin/python installed.py demo 00_temp.bin'
}

[ "$(id -u)" = 0 ] || { skipped "packages, only root can try them"; exit 0; }
[ -w /dev/fuse ] || { skipped "packages, /dev/fuse cannot be opened"; exit 0; }
if [ "${1:-}" = inside ]; then
    "test_$2"
    exit
fi
kinds=("$@")
if [ $# = 0 ]; then
    for package in deb:tilefs_*.deb musl:tilefs-*-linux-musl.tar.gz image:image/root wheel:tilefs-*.whl; do
        # shellcheck disable=SC2086 # a pattern of names
        if ls -d "$made"/${package#*:} >/dev/null 2>&1; then
            kinds+=("${package%%:*}")
        else
            skipped "there is no ${package%%:*}; make it with scripts/package.sh"
        fi
    done
fi
for kind in ${kinds[@]+"${kinds[@]}"}; do
    unshare --mount --propagation private "$0" inside "$kind"
done
