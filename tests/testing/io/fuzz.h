/* testing/io/fuzz.h - what a fuzz target defines.
 *
 * The name is the fuzzer's. The target reads `size` bytes at `data` as its
 * format would, frees everything and returns 0; a crash or a leak is a finding.
 */
#ifndef FATHOM_TESTING_FUZZ_H
#define FATHOM_TESTING_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif /* FATHOM_TESTING_FUZZ_H */
