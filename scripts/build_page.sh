#!/bin/sh
# Builds the page of `tilefs serve` in web/dist, from which cargo takes it into the program. Without Node.js, the program
# is built without it, and its page is a plain listing.
set -eu
cd "$(dirname "$0")/../web"

if ! command -v npm >/dev/null 2>&1; then
    echo "build_page.sh: there is no npm, so tilefs serve will have a plain page; Node.js 20.19 or newer has it" >&2
    exit 0
fi
[ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --no-audit --no-fund --silent
npm run --silent build
