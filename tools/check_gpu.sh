# check_gpu.sh - sourced by ./check --gpu: the tests that a card takes part in.
#
# The checkers of CUDA slow kernels down by ten and more, so they see the generated cases of
# operations alone.
backend=$PWD/build/lib/libfathom_cuda.so

no_card() { # prints why; false: there is one
    if [ ! -e "$backend" ]; then
        echo "the CUDA backend was not built: $(grep -h 'CUDA backend:' "$logs/gcc.log" | tail -n 1)"
    elif ! build/bin/fathom doctor --json --device cuda >"$logs/doctor.json" 2>"$logs/doctor.txt"; then
        sed -n 's/^ *//;1,2p' "$logs/doctor.txt"
    else
        return 1
    fi
}

sanitized() { # tool program...
    local tool=$1 program
    shift
    for program in "$@"; do
        echo "== $program"
        FATHOM_TEST_DEVICE=$backend compute-sanitizer --tool "$tool" --error-exitcode 9 "$program" || [ $? -eq 77 ] || return 1
    done
}

echo "gpu"
if reason=$(no_card); then
    echo "  skip  everything: $reason"
else
    step gpu gpu run_tests gpu build -j 1 -L '^gpu$'
    if command -v compute-sanitizer >/dev/null; then
        for tool in memcheck racecheck; do
            step $tool $tool sanitized $tool build/tests/parity/test_device
        done
    else
        echo "  skip  memcheck, racecheck: compute-sanitizer was not found"
    fi
fi
