# Prints the tests that SEMANTICS.md names and that did not pass according to the log of cargo test, one per line. Exits
# with 1 if there is one.
#
#   awk -f scripts/promised_tests.awk docs/SEMANTICS.md LOG

# Names are in backticks, within brackets after a sentence.
FNR == NR {
    rest = $0
    if (match(rest, /\[`/)) {
        within = 1
        rest = substr(rest, RSTART)
    }
    while (within && match(rest, /`[a-z0-9_]+`/)) {
        promised[substr(rest, RSTART + 1, RLENGTH - 2)] = 1
        rest = substr(rest, RSTART + RLENGTH)
    }
    if (/\]$/) within = 0
    next
}

{ gsub(/\033\[[0-9;]*m/, "") }

/^test .* \.\.\. ok$/ {
    name = $2
    sub(/.*::/, "", name)
    passed[name] = 1
}

END {
    for (name in promised) {
        count++
        if (!(name in passed)) {
            print "SEMANTICS.md names a test that did not pass: " name
            missing++
        }
    }
    if (count < 30) print "SEMANTICS.md names " count + 0 " tests only"
    exit missing > 0 || count < 30
}
