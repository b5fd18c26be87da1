#!/bin/bash
# Accepts what a change is meant to change, and lists the files that this rewrote, for a look at their differences: the
# digests of every path, the sections of the manual that are made from the views, the manual pages as text, the table in
# docs/types.md, the instructions that hot paths take, and the exceptions of the rules of sources that are no longer
# needed.
#
# Pictures of the page are accepted apart: TILEFS_ACCEPT=yes cargo test --workspace --test serve pages_look_as_they_did
set -euo pipefail
cd "$(dirname "$0")/.."

export TILEFS_ACCEPT=yes
cargo test --locked --quiet -p tilefs-documents
cargo test --locked --quiet -p tilefs-tree --lib the_manual_lists
scripts/render_manuals.sh
cargo test --locked --quiet --workspace --test every_path every_path_of
cargo test --locked --quiet --workspace --test python exits_agree
cargo test --locked --quiet --workspace --test instructions
git diff --stat -- docs/types.md man tests/every_path tests/documents tests/instructions
