#!/bin/bash
# Lists every path of all arrays and groups in some folders: type, size, SHA-256 or error, extended attributes. The
# listings of two commits show what a change changed:
#
#   scripts/list_every_path.sh OUT FOLDER...
#
# `diff` compares two of them line by line. tests/every_path/walk.rs says what is sampled. Set CARGO_ARGS=--release for
# large folders.
set -euo pipefail

if [ $# -lt 2 ]; then
    sed -n '2,/^[^#]/{/^#/s/^# \{0,1\}//p}' "$0" >&2
    exit 2
fi
out=$(realpath "$1")
shift
folders=$(realpath "$@" | paste -sd:)
cd "$(dirname "$0")/.."
# shellcheck disable=SC2086 # a list of arguments
TILEFS_LIST=$folders TILEFS_LIST_TO=$out cargo test ${CARGO_ARGS:-} --quiet --test every_path given_folders_are_listed -- --ignored
