#!/bin/sh
# Renders the manual pages as text (man/NAME.txt), which `tilefs man` shows if the system has no man(1). Run it after
# changing a page. Needs mandoc.
#
# usage: scripts/render_manuals.sh [FOLDER]      (default: man)
set -eu

cd "$(dirname "$0")/.."
folder=${1:-man}
for page in man/tilefs.1 man/tilefs-paths.7; do
    name=$(basename "${page%.*}")
    # Remove the backspaces and overstruck letters that mark bold and underlined text.
    mandoc -T ascii -O width=78 "$page" | LC_ALL=C sed "s/.$(printf '\b')//g" > "$folder/$name.txt"
done
