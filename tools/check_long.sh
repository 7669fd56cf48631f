# check_long.sh - sourced by ./check --long: everything that takes its time.
fuzz_seconds=${FTH_FUZZ_SECONDS:-60} # for each target

fuzz_targets() {
    local target name found=build/fuzz/findings
    for target in tests/fuzz/fuzz_*.c; do
        name=$(basename "$target" .c)
        name=${name#fuzz_}
        mkdir -p "$found/$name"
        echo "== $name"
        # New inputs go to the first folder; the kept ones are only read.
        "build/fuzz/tests/fuzz/fuzz_$name" -max_total_time="$fuzz_seconds" -rss_limit_mb=2048 -timeout=20 \
            -artifact_prefix="$found/" "$found/$name" "tests/fuzz/corpus/$name" || return 1
    done
}

# Of what users run; what the tests themselves run is of no interest.
coverage() {
    local part low=0 counts=build/check/coverage.json
    gcovr --root . --filter '(src|instruments|cli)/' --json "$counts" build/coverage/CMakeFiles || return 1
    for part in src instruments cli; do
        echo "== $part"
        gcovr --root . --filter "$part/" --fail-under-line 90 --print-summary \
            --txt "build/check/coverage-$part.txt" --add-tracefile "$counts" || low=1
    done
    return $low
}

echo "long"
export FTH_TEST_FULL=yes
step long-tests release-again run_tests release-again build -L "$sanitized_only"
unset FTH_TEST_FULL
step sanitizers asan-emulated run_tests asan-emulated build/asan -L '^emulated$'
step long-tests long run_tests long build -C long -L '^long$'
if step thread-sanitizer build-tsan build tsan; then
    step thread-sanitizer tsan run_tests tsan build/tsan -L '^(unit|property)$'
fi
# valgrind sees reads of memory nobody wrote, which no sanitizer here does.
if step valgrind build-valgrind build valgrind; then
    step valgrind valgrind run_tests valgrind build/valgrind -L '^(unit|fault)$'
fi
if step fuzz build-fuzz build fuzz $(basename -s .c tests/fuzz/fuzz_*.c); then
    step fuzz fuzz fuzz_targets
fi
if [ -x tests/mutants/run ]; then
    step mutants mutants tests/mutants/run
fi
if step coverage build-coverage build coverage; then
    find build/coverage -name '*.gcda' -delete
    step coverage coverage-tests run_tests coverage-tests build/coverage \
        -L '^(unit|property|parity|golden|fault|fuzz|example|python)$' -E '^emulated/'
    step coverage coverage coverage
    grep -hE '^(== |lines: )' build/check/coverage.log
fi
