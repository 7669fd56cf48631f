/* mask.c - masks of a file: one of all patterns, or one of each, as flags of good pixels.
 *
 * A mask is as large as the patterns, or as the frames that they are cut out of: then it is cut and
 * binned as those, and a pixel is good where all that were added up are.
 */
#include "parts.h"

#include <math.h>
#include <string.h>

/* Flags of a mask: 1 where a value means what the rule calls good. Returns where the first NaN is,
 * which means neither; -1: none. */
static int64_t settle_mask(pt_mask_rule rule, fth_dtype dtype, const void *from, int64_t count,
                           uint8_t *out)
{
    const int64_t item = fth_dtype_size(dtype);
    const bool set_is_good = rule == PT_MASK_GOOD;
    for (int64_t i = 0; i < count; i++) {
        double v = 0;
        pt_to_f64(dtype, (const char *)from + i * item, 1, &v);
        if (isnan(v)) return i;
        out[i] = (v != 0) == set_is_good;
    }
    return -1;
}

static fth_status is_nan(const char *path, const char *name, const char *at, fth_err *err)
{
    FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: '%s' is NaN at %s: expected 0 or another number", path,
             name, at);
    fth_err_hint(err, "write 0 or 1 there; --mask.convention says what they mean");
    return FTH_E_FILE_FORMAT;
}

/* The rule under which what was good is bad. */
static pt_mask_rule opposite(pt_mask_rule rule)
{
    return rule == PT_MASK_GOOD ? PT_MASK_BAD : PT_MASK_GOOD;
}

/* ---- a mask of each pattern ---- */

typedef struct mask_view {
    fth_mem *mem;
    fth_source base;
    pt_mask_rule rule;
    char path[FTH_PATH], name[80]; /* of the array, to say where it is wrong */
} mask_view;

static fth_status mask_read(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    const mask_view *m = self;
    const int64_t count = n[0] * n[1] * n[2];
    void *room = NULL;
    FTH_TRY(fth_mem_take(m->mem, FTH_MEM_ANY, (uint64_t)(count * fth_dtype_size(m->base.dtype)) + 1,
                         "masks", &room, err));
    fth_status s = m->base.read(m->base.self, lo, n, room, err);
    const int64_t nan = s == FTH_OK ? settle_mask(m->rule, m->base.dtype, room, count, dst) : -1;
    fth_mem_release(m->mem, room, NULL);
    if (nan >= 0) {
        char at[80];
        snprintf(at, sizeof at, "[%lld %lld %lld]", (long long)(lo[0] + nan / (n[1] * n[2])),
                 (long long)(lo[1] + nan / n[2] % n[1]), (long long)(lo[2] + nan % n[2]));
        s = is_nan(m->path, m->name, at, err);
    }
    return s;
}

fth_status pt_flags_view(pt_scan *scan, const fth_source *base, const char *name, pt_mask_rule rule,
                         fth_dtype dtype, fth_source *out, fth_err *err)
{
    const fth_source s = *base;
    void *block = NULL;
    FTH_TRY(pt_scan_hold(scan, sizeof(mask_view), "masks of a scan", &block, err));
    mask_view *m = block;
    *m = (mask_view){.mem = scan->mem, .base = s, .rule = rule};
    snprintf(m->path, sizeof m->path, "%s", scan->path);
    snprintf(m->name, sizeof m->name, "%s", name);
    *out = (fth_source){.kind = s.kind,
                        .self = m,
                        .dtype = dtype,
                        .n_axes = 3,
                        .size = {s.size[0], s.size[1], s.size[2]},
                        .read = mask_read,
                        .libraries = s.libraries,
                        .billed_bytes = s.billed_bytes};
    return FTH_OK;
}

static fth_status set_each(pt_draft *d, const fth_source *base, const char *name, pt_mask_rule rule,
                           bool cut, fth_err *err)
{
    fth_source s = *base;
    if (cut) { /* binning counts bad pixels */
        FTH_TRY(pt_flags_view(d->scan, &s, name, opposite(rule), FTH_U8, &s, err));
        FTH_TRY(pt_frames_view(d, &s, &s, err));
        rule = PT_MASK_BAD;
    }
    return pt_flags_view(d->scan, &s, name, rule, FTH_BOOL, &d->scan->masks, err);
}

/* ---- a mask of all patterns ---- */

static fth_status set_one(pt_draft *d, const fth_source *b, pt_mask_rule rule, bool cut,
                          const char *name, fth_err *err)
{
    pt_scan *scan = d->scan;
    const int64_t count = scan->N * scan->N;
    fth_tensor *t = NULL;
    void *block = NULL, *bad = NULL;
    int64_t nan = -1;
    FTH_TRY(fth_source_load(b, scan->mem, name, &t, err));
    fth_status s = pt_scan_hold(scan, (uint64_t)count, "mask", &block, err);
    if (s == FTH_OK && cut)
        s = fth_mem_take(scan->mem, FTH_MEM_ANY, (uint64_t)(d->rows * d->cols), "mask of frames",
                         &bad, err);
    if (s == FTH_OK && cut) {
        nan = settle_mask(opposite(rule), b->dtype, fth_tensor_view(t), d->rows * d->cols, bad);
        if (nan < 0) pt_frames_cut_mask(d, bad, block);
    } else if (s == FTH_OK) {
        nan = settle_mask(rule, b->dtype, fth_tensor_view(t), count, block);
    }
    fth_mem_release(scan->mem, bad, NULL);
    fth_tensor_release(t);
    scan->mask = block;
    if (s != FTH_OK) return s;
    if (nan >= 0) {
        char at[60];
        const int64_t cols = b->size[1];
        snprintf(at, sizeof at, "[%lld %lld]", (long long)(nan / cols), (long long)(nan % cols));
        return is_nan(scan->path, name, at, err);
    }
    for (int64_t i = 0; i < count; i++)
        if (scan->mask[i]) return FTH_OK;
    FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: '%s' leaves no good pixel", scan->path, name);
    fth_err_hint(err, "--mask.convention says what its values mean");
    return FTH_E_FILE_FORMAT;
}

/* ---- either ---- */

static bool ends_with(const fth_source *s, int64_t rows, int64_t cols)
{
    return s->size[s->n_axes - 2] == rows && s->size[s->n_axes - 1] == cols;
}

static fth_status check_mask(const pt_draft *d, const fth_source *s, const char *name, bool *cut,
                             fth_err *err)
{
    const pt_scan *scan = d->scan;
    char shape[120];
    const bool fits = (s->n_axes == 2 || (s->n_axes == 3 && s->size[0] == scan->n)) &&
                      (s->dtype == FTH_BOOL || pt_is_number(s->dtype));
    *cut = fits && pt_frames_are_cut(d) && ends_with(s, d->rows, d->cols);
    if (*cut || (fits && ends_with(s, scan->N, scan->N))) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                    "%s: '%s' is %s of %s; expected [%lld %lld] or [%lld %lld %lld] of bool or "
                    "numbers, as the patterns are",
                    scan->path, name, pt_shape_text(s, shape, sizeof shape),
                    fth_dtype_name(s->dtype), (long long)d->rows, (long long)d->cols,
                    (long long)scan->n, (long long)d->rows, (long long)d->cols);
}

static pt_mask_rule rule_of(const pt_draft *d)
{
    return d->opt->mask == PT_MASK_AUTO ? d->own_rule : d->opt->mask;
}

fth_status pt_set_masks_of(pt_draft *d, const fth_source *base, const char *name, fth_err *err)
{
    bool cut = false;
    FTH_TRY(check_mask(d, base, name, &cut, err));
    return set_each(d, base, name, rule_of(d), cut, err);
}

fth_status pt_set_mask(pt_draft *d, fth_source *base, const char *name, fth_err *err)
{
    bool cut = false;
    fth_status s = check_mask(d, base, name, &cut, err);
    if (s == FTH_OK && base->n_axes == 3) {
        const fth_source kept = *base;
        FTH_TRY(pt_scan_keep(d->scan, base, err));
        return set_each(d, &kept, name, rule_of(d), cut, err);
    }
    if (s == FTH_OK) s = set_one(d, base, rule_of(d), cut, name, err);
    fth_source_close(base);
    return s;
}
