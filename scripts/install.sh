#!/bin/sh
# Copies a built program and the files that belong to it into a folder, arranged as in a package: the program, the link
# that mount(8) looks for, manual pages, completions for three shells, the systemd unit, licence and documents. Packages
# of all distributions use this script, so they have the same files.
#
# usage: [DESTDIR=FOLDER] scripts/install.sh PROGRAM PREFIX [FINAL]
#
#   PROGRAM   such as target/release/tilefs; it must run here, because it writes the completions
#   PREFIX    such as /usr/local, or "$pkgdir/usr"
#   FINAL     what PREFIX will be on the machine that the package is installed on; the default is PREFIX
#   DESTDIR   a folder that stands for the root of that machine
set -eu

[ $# -ge 2 ] || {
    echo "usage: [DESTDIR=FOLDER] scripts/install.sh PROGRAM PREFIX [FINAL]" >&2
    exit 2
}
program=$1
prefix=${DESTDIR:-}$2
final=${3:-$2}
here=$(dirname "$0")/..

put() {
    install -d "$prefix/$(dirname "$3")"
    install -m "$1" "$2" "$prefix/$3"
}

made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
for shell in bash zsh fish; do
    "$program" completions "$shell" > "$made/$shell"
done
echo ".so man1/tilefs.1" > "$made/helper"
# The unit in the repository is for packages whose prefix is /usr.
sed "s|/usr/bin/tilefs|$final/bin/tilefs|" "$here/packaging/tilefs@.service" > "$made/unit"

put 755 "$program" bin/tilefs
install -d "$prefix/sbin"
ln -sf ../bin/tilefs "$prefix/sbin/mount.fuse.tilefs"
put 644 "$here/man/tilefs.1" share/man/man1/tilefs.1
put 644 "$here/man/tilefs-paths.7" share/man/man7/tilefs-paths.7
put 644 "$made/helper" share/man/man8/mount.fuse.tilefs.8
put 644 "$made/bash" share/bash-completion/completions/tilefs
put 644 "$made/zsh" share/zsh/site-functions/_tilefs
put 644 "$made/fish" share/fish/vendor_completions.d/tilefs.fish
put 644 "$made/unit" lib/systemd/system/tilefs@.service
put 644 "$here/LICENSE" share/licenses/tilefs/LICENSE
for document in README.md CHANGELOG.md docs/SEMANTICS.md docs/TROUBLESHOOTING.md; do
    put 644 "$here/$document" "share/doc/tilefs/$(basename "$document")"
done
