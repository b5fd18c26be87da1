#!/bin/sh
# Mounts an array in a container without privileges, as Apptainer does for
#   --fusemount "container:tilefs mount /data /files"
# An ordinary user makes namespaces, opens /dev/fuse in them, mounts it with the options of Apptainer, and starts the
# program with /dev/fd/3 in the place of /files. The container has the program, a few devices and the array; if the
# program is not static, also the libraries of this machine. The user of the container has no capability.
#
# usage: scripts/test_container.sh PROGRAM ARRAY FILE EXPECTED      compares /files/FILE with EXPECTED
#
# Exits with 77 if ordinary users cannot make namespaces here.
set -eu

if [ "$1" != inside ]; then
    user=$(id -u)
    alone="unshare --user --map-root-user --mount --pid --fork --kill-child"
    if [ "$user" = 0 ]; then
        user=1000
        alone="setpriv --reuid=$user --regid=$user --clear-groups --no-new-privs $alone"
    fi
    # shellcheck disable=SC2086 # a command of several words
    $alone unshare --user --map-user="$user" true || exit 77
    place=$(mktemp -d)
    trap 'rm -rf "$place"' EXIT
    # Copies that this user can read.
    cp "$1" "$place/tilefs"
    cp -r "$2" "$place/array"
    cp "$4" "$place/expected"
    cp "$0" "$place/script"
    mkdir "$place/made"
    chmod -R u=rwX,go=rX "$place"
    cd /
    # shellcheck disable=SC2086
    $alone sh "$place/script" inside "$place" "$user" "$3"
    exit
fi

place=$2 user=$3 file=$4
root=$place/made/root session=$place/made/session
mount -t tmpfs none "$place/made"
mkdir -p "$session" "$root/usr/bin" "$root/dev" "$root/proc" "$root/data" "$root/files"
cp "$place/tilefs" "$root/usr/bin/tilefs"
if readelf --program-headers "$place/tilefs" | grep -q INTERP; then
    for folder in /lib /lib64 /usr/lib /nix; do
        [ -d "$folder" ] || continue
        mkdir -p "$root$folder"
        mount --rbind "$folder" "$root$folder"
    done
fi
touch "$root/dev/null"
mount --bind /dev/null "$root/dev/null"
mount -t proc proc "$root/proc"
ln -s /proc/self/fd "$root/dev/fd"
mount --bind "$place/array" "$root/data"

exec 3<>/dev/fuse
mount --internal-only -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0,nosuid,nodev none "$session"
mount --bind "$session" "$root/files"
unshare --user --map-user="$user" --map-group="$user" --root="$root" \
    /usr/bin/tilefs mount /data /dev/fd/3 -f < /dev/null &
server=$!
exec 3>&-

cmp "$place/expected" "$root/files/$file"
cmp --ignore-initial=4000 --bytes=800 "$place/expected" "$root/files/$file"
grep -q "^CapPrm:[[:space:]]*0*$" "$root/proc/$server/status"
! touch "$root/files/new" 2> /dev/null || exit 2
kill -TERM "$server"
wait "$server"
! cat "$root/files/$file" 2> /dev/null || exit 3
