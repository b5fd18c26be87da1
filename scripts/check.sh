#!/bin/bash
# Checks a change in short time, while one works on it; scripts/test.sh runs everything. It checks the format, the rules
# of sources and documents, the types of all crates, the unit tests of crates that changed, and every path of one array
# of each kind.
#
#   scripts/check.sh              what changed since the branch left main, committed or not
#   scripts/check.sh CRATE...     the folders of crates in crates/, or `tilefs` for the program
#
#   TILEFS_BASE=COMMIT            what counts as changed is what differs from COMMIT
set -euo pipefail
cd "$(dirname "$0")/.."

# Arrays and groups of tests/fixtures, one of each kind.
kinds=demo:long:arrays/groups/experiment:rasters/described:variants/v4

step() {
    echo "== $*"
    "$@"
}

# Prints the changed files whose names have this pattern.
changed_files() {
    local base
    base=${TILEFS_BASE:-$(git merge-base HEAD origin/main 2>/dev/null || git merge-base HEAD main 2>/dev/null || echo HEAD)}
    { git diff --name-only "$base" && git ls-files --others --exclude-standard; } | grep -E "$1" || true
}

if [ $# -gt 0 ]; then
    crates=$*
else
    crates=$(changed_files '\.rs$' | sed -nE 's|^crates/([^/]*)/.*|\1|p; s|^src/.*|tilefs|p' | sort -u)
fi

step cargo fmt --all --check
step cargo test --locked --quiet -p tilefs-documents
if [ -z "$crates" ] && [ -z "$(changed_files '\.(rs|toml)$')" ]; then
    echo "no source file changed"
    exit 0
fi
step cargo check --locked --quiet --workspace --tests
# A crate alone has other features than the workspace, so the first time compiles its dependencies again.
for crate in $crates; do
    [ "$crate" = tilefs ] || [ -d "crates/$crate" ] || continue
    case $crate in
    # It has no unit tests: `cargo test --workspace --test python` runs those of the package.
    python) ;;
    tilefs | hdf5-layout) step cargo test --locked --quiet -p "$crate" --lib ;;
    *) step cargo test --locked --quiet -p "tilefs-$crate" --lib ;;
    esac
done
TILEFS_ONLY=$kinds step cargo test --locked --quiet --workspace --test every_path every_path_of
