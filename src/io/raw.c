/* raw.c - elements without a format: the caller says what they are. */
#include "array/rect.h"
#include "base/checked.h"
#include "io/dense.h"

#include <inttypes.h>
#include <string.h>

static fth_status layout_of(const fth_raw_layout *raw, fth__layout *l, uint64_t *end, fth_err *err)
{
    if (!raw) return FTH_FAIL(err, FTH_E_USAGE, "a raw file needs a layout");
    uint64_t bytes = 0;
    FTH_TRY(fth__shape_check(raw->dtype, raw->n_axes, raw->size, NULL, &bytes, err));
    if (!fth__add_u64(raw->offset, bytes, end) || *end > (uint64_t)INT64_MAX)
        return FTH_FAIL(err, FTH_E_SIZE_OVERFLOW,
                        "offset %" PRIu64 " and %" PRIu64 " bytes of data pass 2^63", raw->offset,
                        bytes);
    *l = (fth__layout){
        .dtype = raw->dtype, .n_axes = raw->n_axes, .offset = raw->offset, .swap = raw->big_endian};
    memcpy(l->size, raw->size, sizeof l->size);
    return FTH_OK;
}

fth_status fth_raw_open(fth_source *out, fth_mem *mem, const char *path,
                        const fth_raw_layout *layout, fth_err *err)
{
    *out = (fth_source){0};
    fth__layout l;
    uint64_t end = 0;
    FTH_TRY(layout_of(layout, &l, &end, err));
    fth_file *f = NULL;
    FTH_TRY(fth_file_open(&f, mem, path, err));
    fth_status s = FTH_OK;
    if (end > f->bytes) {
        char shape[200];
        s = FTH__FILE_FAIL(err, FTH_E_FILE_SHORT, path, l.offset,
                           "%s needs the file to have %" PRIu64 " bytes; it has %" PRIu64,
                           fth__shape_text(l.dtype, l.n_axes, l.size, shape, sizeof shape), end,
                           f->bytes);
    }
    fth__bytes bytes = {0};
    if (s == FTH_OK) s = fth__bytes_of_file(&bytes, f, 0, err);
    if (s != FTH_OK) {
        fth_file_close(f);
        return s;
    }
    s = fth__dense_open(out, "raw", mem, &bytes, &l, err);
    if (s != FTH_OK) bytes.close(bytes.self);
    return s;
}

fth_status fth_raw_create(fth_sink *out, fth_mem *mem, const char *path,
                          const fth_raw_layout *layout, const void *header, fth_err *err)
{
    *out = (fth_sink){0};
    fth__layout l;
    uint64_t end = 0;
    FTH_TRY(layout_of(layout, &l, &end, err));
    return fth__dense_create(out, "raw", mem, path, &l, header, err);
}
