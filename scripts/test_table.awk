# Makes the closing table of scripts/test.sh from the output of cargo and the tests: the results of each test program,
# skipped tests with the reason, and a last line "N passed, N failed, N skipped". A test that skips a part of its work
# counts as skipped.

{ gsub(/\033\[[0-9;]*m/, "") }

# Returns the crate of a unit test program: "(target/debug/deps/tilefs_reader-1234abcd)".
function unit_tests(path) {
    sub(/.*\//, "", path)
    sub(/-[0-9a-f]+\)$/, "", path)
    return path
}

# The start of a test program: "Running tests/cloud/main.rs (target/debug/deps/cloud-...)", "Doc-tests tilefs".
/^ +(Running|Doc-tests) / {
    program = $1 == "Running" ? ($2 == "unittests" ? unit_tests($4) " " $3 : $2) : "documentation of " $2
    if (!(program in finished)) programs[++count] = program
    finished[program] = 0
}

/^ +Preparing$/ { program = "" }

match($0, /SKIPPED: /) {
    line = substr($0, RSTART + RLENGTH)
    skips[++skip_count] = (program == "" ? "preparation" : program) ": " line
    # Tests print their own name first.
    if (match(line, /^[A-Za-z0-9_]+(::[A-Za-z0-9_]+)*: /) && program != "") {
        test = program SUBSEP substr(line, 1, RLENGTH - 2)
        if (!(test in seen)) {
            seen[test] = 1
            skipped[program]++
        }
    }
}

/^test .* \.\.\. ignored/ {
    test = $0
    sub(/^test /, "", test)
    sub(/ \.\.\. ignored,? ?/, ": ", test)
    sub(/: $/, ": only on request", test)
    skips[++skip_count] = program ": " test
}

/^test result: / {
    finished[program] = 1
    for (field = 2; field <= NF; field++) {
        if ($field == "passed;") passed[program] += $(field - 1)
        if ($field == "failed;") failed[program] += $(field - 1)
        if ($field == "ignored;") ignored[program] += $(field - 1)
    }
}

END {
    print "\nWhat ran"
    for (i = 1; i <= count; i++) {
        program = programs[i]
        # cargo counts a skipped test as passed.
        ran = passed[program] - skipped[program]
        left_out = skipped[program] + ignored[program]
        if (!finished[program]) {
            printf "  %-32s did not finish\n", program
            broken++
        } else if (ran + failed[program] + left_out > 0) {
            printf "  %-32s %4d passed", program, ran
            if (failed[program]) printf ", %d FAILED", failed[program]
            if (left_out) printf ", %d skipped", left_out
            printf "\n"
        }
        all_passed += ran
        all_failed += failed[program]
        all_skipped += left_out
    }
    if (skip_count) print "\nWhat was skipped, in whole or in part"
    for (i = 1; i <= skip_count; i++) print "  " skips[i]
    printf "\n%d passed, %d failed, %d skipped\n", all_passed, all_failed + broken, all_skipped
}
