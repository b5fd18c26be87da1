#!/bin/sh
# Builds the page of `tilefs serve` from web/ into src/serve/folder/built, which is committed: the program includes it, so
# that Node.js is needed only for a change of the page.
set -eu
cd "$(dirname "$0")/../web"

if ! command -v npm >/dev/null 2>&1; then
    echo "build_page.sh: there is no npm; Node.js 20.19 or newer has it" >&2
    exit 1
fi
[ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --no-audit --no-fund --silent
npm run --silent build
