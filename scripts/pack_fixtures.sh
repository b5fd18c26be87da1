#!/bin/sh
# Packs folders of fixtures into an archive that the tests unpack: thousands of small files become one.
#
# usage: scripts/pack_fixtures.sh ARCHIVE FOLDER NAME...
#
# Packs the files and folders NAME... of FOLDER into ARCHIVE (a .tar.zst in tests/fixtures). The same files give the
# same bytes: the archive stores no owners or times, and sorts its entries. Needs GNU tar and zstd.
set -eu

archive=$1
folder=$2
shift 2
tar --create --directory "$folder" --sort=name --format=gnu --owner=0 --group=0 --numeric-owner --mtime=@0 \
    --mode=u=rwX,go=rX "$@" |
    zstd --quiet -19 --long=27 --force -o "$archive"
