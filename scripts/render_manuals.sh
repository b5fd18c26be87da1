#!/bin/sh
# Renders the manual pages as text, which `tilefs man` shows where no man(1) does: man/NAME.txt. Run it after a change of
# a page. Needs mandoc.
#
# usage: scripts/render_manuals.sh [FOLDER]      (default: man)
set -eu

cd "$(dirname "$0")/.."
folder=${1:-man}
for page in man/tilefs.1 man/tilefs-paths.7; do
    name=$(basename "${page%.*}")
    # Without the overstrikes by which bold and underlined letters are written.
    mandoc -T ascii -O width=78 "$page" | LC_ALL=C sed "s/.$(printf '\b')//g" > "$folder/$name.txt"
done
