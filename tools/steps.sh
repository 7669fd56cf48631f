# steps.sh - sourced by ./check: run steps, time them, remember what failed.
#
# step GROUP NAME COMMAND... keeps the output in build/check/NAME.log and shows
# its end only when the step fails, so that a good run is short to read; what
# failed tests said is shown once, by the summary.
logs=build/check
steps_passed=0
steps_failed=0
failed_steps=()
declare -A seconds_of
groups=()

step() {
    local group=$1 name=$2 log=$logs/$2.log begin status
    shift 2
    begin=$(date +%s)
    "$@" >"$log" 2>&1 </dev/null
    status=$?
    local took=$(($(date +%s) - begin))
    [ -n "${seconds_of[$group]:-}" ] || groups+=("$group")
    seconds_of[$group]=$((${seconds_of[$group]:-0} + took))
    # Tests are counted one by one from the .xml beside the log, not as a step.
    local counts=1
    [ -f "$logs/$name.xml" ] && counts=0
    if [ $status -eq 0 ]; then
        steps_passed=$((steps_passed + counts))
        printf '  ok    %-22s %4d s\n' "$name" "$took"
    else
        steps_failed=$((steps_failed + counts))
        failed_steps+=("$name")
        printf '  FAIL  %-22s %4d s   %s\n' "$name" "$took" "$log"
        [ $counts -eq 0 ] || tail -n 40 "$log" | sed 's/^/        /'
    fi
    return $status
}

# begin NAME COMMAND...: run it beside the steps that follow, with what they leave of the processors;
# 'step GROUP NAME join NAME' waits for it and has its output and its status. What still runs when the
# script ends is stopped: it has a process group of its own.
declare -A begun
begin() {
    local name=$1
    shift
    set -m
    (
        renice -n 19 "$BASHPID" >/dev/null
        "$@"
    ) >"$logs/$name.begun" 2>&1 </dev/null &
    begun[$name]=$!
    set +m
}

join() {
    local status
    wait "${begun[$1]}"
    status=$?
    unset "begun[$1]"
    cat "$logs/$1.begun"
    return $status
}

stop_begun() {
    local pid
    for pid in "${begun[@]}"; do kill -- "-$pid" 2>/dev/null; done
}

# run_tests NAME BUILD ARGUMENTS...: ctest with a machine-readable result beside
# the log. A build without any test of the kind is not a failure of the kind. Some tests
# sleep for most of their time, so there are half as many more as processors.
run_tests() {
    local name=$1 build=$2 processors
    shift 2
    processors=$(nproc)
    ctest --test-dir "$build" -j $((processors + (processors + 1) / 2)) --output-on-failure --no-tests=ignore \
        --test-output-size-passed 1000000 --test-output-size-failed 1000000 \
        --output-junit "$PWD/$logs/$name.xml" "$@"
}

ledger() {
    local group
    printf '\ntime:'
    for group in "${groups[@]}"; do printf '  %s %d s' "$group" "${seconds_of[$group]}"; done
    printf '  all %d s\n' "$SECONDS"
}
