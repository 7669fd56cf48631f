/* fuzz_bragg_hkl.c - any bytes as a list of reflections in both modes, and as a dump.
 * seconds: 5 */
#include "testing/io/fuzz_file.h"

#include "instruments/bragg/read/read.h"

/* A table has its planes behind the end, and nothing but what its ranges say. */
static void check(br_reflections *r)
{
    const int64_t n[3] = {r->h_max - r->h_min + 2, r->k_max - r->k_min + 2,
                          r->l_max - r->l_min + 2};
    for (int i = 0; i < 3; i++)
        if (fth_tensor_size(r->table, i) != n[i]) abort();
    if (r->hkls < 1) abort();
    br_reflections_clear(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_file f = fuzz_file_open(data, size);
    br_reflections r;
    for (int strict = 0; strict < 2; strict++)
        if (br_hkl_read(&r, f.mem, f.path, 7, strict, NULL) == FTH_OK) check(&r);
    if (br_dump_read(&r, f.mem, f.path, NULL) == FTH_OK) check(&r);
    fuzz_file_close(&f);
    return 0;
}
