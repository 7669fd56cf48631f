# check_gpu.sh - sourced by ./check --gpu: the tests that a card takes part in.
#
# The checkers of CUDA slow kernels down by ten and more, so they see a part of them
# (tools/sanitize_gpu). Tests that measure memory or time run alone.
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

echo "gpu"
if reason=$(no_card); then
    echo "  skip  everything: $reason"
else
    step gpu gpu run_tests gpu build -j 4 -L '^gpu$'
    for tool in memcheck racecheck; do
        if command -v compute-sanitizer >/dev/null || [ -e /usr/local/cuda/bin/compute-sanitizer ]; then
            step $tool $tool env FATHOM_TEST_DEVICE="$backend" tools/sanitize_gpu build/tests $tool
        else
            echo "  skip  $tool: compute-sanitizer was not found"
        fi
    done
fi
