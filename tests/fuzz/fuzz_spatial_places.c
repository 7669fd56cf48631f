/* fuzz_spatial_places.c - any bytes as a table of positions in CSV, packed or not, of every kind.
 * seconds: 3 */
#include "testing/io/fuzz_file.h"

#include "instruments/spatial/read/tenx.h"

static fth_status use(void *user, const sp_place *p, int64_t row, fth_err *err)
{
    unsigned *sum = user;
    (void)err;
    for (size_t i = 0; i < p->bytes; i++) *sum += (unsigned char)p->name[i];
    for (int k = 0; k < SP_PLACE_LABELS; k++)
        for (size_t i = 0; i < p->label[k].bytes; i++) *sum += (unsigned char)p->label[k].text[i];
    if (row < 1) abort();
    return FTH_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const sp_places_how hows[] = {
        {.kind = "visium"}, {.kind = "xenium"}, {"merscope", {"type"}}, {"cosmx", {"type", "fov"}}};
    fuzz_file f = fuzz_file_open(data, size);
    unsigned sum = 0;
    for (int k = 0; k < 4; k++)
        if (sp_places_read(f.mem, f.path, &hows[k], use, &sum, NULL) == FTH_E_USAGE) abort();
    fuzz_file_close(&f);
    return 0;
}
