/* wide.c - frames of u32, i16 and i8 as i64 and i32, which the loops over patterns have. */
#include "parts.h"

#include <string.h>

typedef struct wide {
    fth_source base;
} wide;

static fth_dtype wide_of(fth_dtype t)
{
    return t == FTH_U32 ? FTH_I64 : t == FTH_I16 || t == FTH_I8 ? FTH_I32 : t;
}

/* n elements at the end of the room of as many wide ones, which begins at `to`. */
static void widen(fth_dtype t, int64_t n, const char *from, char *to)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t large;
        int32_t small;
        if (t == FTH_U32) {
            uint32_t v;
            memcpy(&v, from + 4 * i, 4);
            large = v;
            memcpy(to + 8 * i, &large, 8);
        } else if (t == FTH_I16) {
            int16_t v;
            memcpy(&v, from + 2 * i, 2);
            small = v;
            memcpy(to + 4 * i, &small, 4);
        } else {
            small = (int8_t)from[i];
            memcpy(to + 4 * i, &small, 4);
        }
    }
}

static fth_status wide_read(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    const wide *w = self;
    const fth_dtype t = w->base.dtype;
    int64_t count = 1;
    for (int a = 0; a < w->base.n_axes; a++) count *= n[a];
    char *narrow = (char *)dst + count * (fth_dtype_size(wide_of(t)) - fth_dtype_size(t));
    FTH_TRY(w->base.read(w->base.self, lo, n, narrow, err));
    widen(t, count, narrow, dst);
    return FTH_OK;
}

fth_status pt_wide_view(pt_scan *scan, const fth_source *base, fth_source *out, fth_err *err)
{
    void *block = NULL;
    *out = *base;
    if (wide_of(base->dtype) == base->dtype) return FTH_OK;
    FTH_TRY(pt_scan_hold(scan, sizeof(wide), "frames as wider numbers", &block, err));
    *(wide *)block = (wide){.base = *base};
    out->self = block;
    out->dtype = wide_of(base->dtype);
    out->read = wide_read;
    out->read_rows = NULL;
    out->data = NULL;
    return FTH_OK;
}
