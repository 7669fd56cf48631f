/* kinds.c - the building blocks, one function each. */
#include "../group/group.h"
#include "../net/model.h"
#include "../object/object.h"
#include "../ops/stitch.h"
#include "../ops/translate.h"
#include "../probe/probe.h"
#include "../stitch/canvas.h"
#include "block.h"

#include <math.h>
#include <string.h>

static fth_status translate(pt_block *b, fth_err *err)
{
    pt_array *images;
    fth_val v, t;
    FTH_TRY(pt_block_read(b, "images", &images, err));
    pt_array_squeeze(images, 3);
    const fth_dtype real = pt_block_real(b, images);
    const fth_dtype dtype = fth_dtype_is_complex(images->dtype) ? fth_dtype_complex_of(real) : real;
    FTH_TRY(pt_block_input(b, images, "flat row col", dtype, &v, err));
    FTH_TRY(pt_block_get(b, "offsets_xy", "flat xy", real, &t, err));
    FTH_TRY(pt_block_axis(b, "xy", 2, "a position (x, y)", err));
    const bool nearest = fth_config_choice(b->cfg, "interpolation") == 1;
    pt_block_put(b, "out", nearest ? pt_translate_nearest(v, t) : pt_translate(v, t));
    return FTH_OK;
}

/* ---- regions ---- */

/* A whole number of the file. */
static fth_status read_int(pt_block *b, const char *name, int64_t *out, fth_err *err)
{
    pt_array *a;
    FTH_TRY(pt_block_read(b, name, &a, err));
    pt_array_squeeze(a, 0);
    const void *p = fth_tensor_data(a->data);
    if (a->n_axes == 0 && a->dtype == FTH_I64)
        *out = *(const int64_t *)p;
    else if (a->n_axes == 0 && a->dtype == FTH_I32)
        *out = *(const int32_t *)p;
    else if (a->n_axes == 0 && a->dtype == FTH_U32)
        *out = *(const uint32_t *)p;
    else if (a->n_axes == 0 && a->dtype == FTH_I16)
        *out = *(const int16_t *)p;
    else if (a->n_axes == 0 && a->dtype == FTH_I8)
        *out = *(const int8_t *)p;
    else
        return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                        "%s: '%s': expected an integer without axes, not u8 or u16", b->name, name);
    return FTH_OK;
}

fth_status pt_block_region(pt_block *b, int64_t n, int64_t *out, fth_err *err)
{
    int64_t side = 0;
    if (pt_block_has(b, "M")) {
        FTH_TRY(read_int(b, "M", &side, err));
        if (side < n)
            return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                            "%s: a region of M=%lld pixels is smaller than a patch of %lld",
                            b->name, (long long)side, (long long)n);
    } else {
        const pt_array *rel = NULL;
        for (int i = 0; i < b->n_arrays; i++)
            if (strcmp(b->array[i].name, "coords_relative") == 0) rel = &b->array[i];
        double most = 0;
        int64_t count = 1;
        for (int d = 0; rel && d < rel->n_axes; d++) count *= rel->size[d];
        for (int64_t i = 0; rel && i < count; i++) {
            const void *p = fth_tensor_data(rel->data);
            const double v = rel->dtype == FTH_F64   ? ((const double *)p)[i]
                             : rel->dtype == FTH_F32 ? (double)((const float *)p)[i]
                                                     : 0;
            if (fabs(v) > most) most = fabs(v);
        }
        side = pt_region_size(n, &most, 1);
    }
    *out = side;
    FTH_TRY(pt_block_axis(b, "prow", side, "the region", err));
    return pt_block_axis(b, "pcol", side, "the region", err);
}

static fth_status merge(pt_block *b, fth_err *err)
{
    const pt_merge_kind kind = (pt_merge_kind)fth_config_choice(b->cfg, "merge");
    pt_array *patches;
    int64_t side;
    fth_val v, rel, probe = {0};
    FTH_TRY(pt_block_read(b, "patches", &patches, err));
    const fth_dtype real = pt_block_real(b, patches);
    FTH_TRY(pt_block_input(b, patches, "group chan row col", fth_dtype_complex_of(real), &v, err));
    FTH_TRY(pt_block_rel(b, real, &rel, err));
    if (kind == PT_MERGE_PROBE) FTH_TRY(pt_block_probe(b, real, &probe, err));
    FTH_TRY(pt_block_region(b, patches->size[3], &side, err));
    pt_block_put(b, "merged", pt_merge(kind, v, rel, probe));
    return FTH_OK;
}

static fth_status extract(pt_block *b, fth_err *err)
{
    pt_array *region;
    fth_val v, rel;
    int64_t n = 0;
    FTH_TRY(pt_block_read(b, "region", &region, err));
    const fth_dtype real = pt_block_real(b, region);
    FTH_TRY(pt_block_input(b, region, "group prow pcol", fth_dtype_complex_of(real), &v, err));
    FTH_TRY(pt_block_rel(b, real, &rel, err));
    FTH_TRY(read_int(b, "N", &n, err));
    if (n < 1 || n > region->size[1])
        return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                        "extract: patches of N=%lld pixels from a region of %lld", (long long)n,
                        (long long)region->size[1]);
    FTH_TRY(pt_block_axis(b, "row", n, "a patch", err));
    FTH_TRY(pt_block_axis(b, "col", n, "a patch", err));
    pt_block_put(b, "patches", pt_extract(v, rel));
    return FTH_OK;
}

/* ---- the detector ---- */

static fth_status diffract(pt_block *b, fth_err *err)
{
    static const char *const axes[] = {"", "", "row col", "flat row col", "group chan row col"};
    pt_array *obj;
    fth_val v, probe;
    FTH_TRY(pt_block_read(b, "obj", &obj, err));
    pt_array_squeeze(obj, 4);
    const fth_dtype real = pt_block_real(b, obj);
    FTH_TRY(pt_block_input(b, obj,
                           obj->n_axes < 2 ? "row col" : axes[obj->n_axes > 4 ? 4 : obj->n_axes],
                           fth_dtype_complex_of(real), &v, err));
    FTH_TRY(pt_block_probe(b, real, &probe, err));
    pt_block_put(b, "amplitude", pt_diffract(v, probe));
    return FTH_OK;
}

static fth_status loss(pt_block *b, fth_err *err)
{
    static const char *const axes[] = {"", "a", "a b", "a b c", "a b c d"};
    fth_val v[2];
    static const char *const name[2] = {"amplitude", "observed_amp"};
    fth_dtype real = FTH_F32;
    for (int i = 0; i < 2; i++) {
        pt_array *a;
        FTH_TRY(pt_block_read(b, name[i], &a, err));
        pt_array_squeeze(a, 4);
        if (i == 0) real = pt_block_real(b, a);
        FTH_TRY(pt_block_input(b, a, axes[a->n_axes > 4 ? 4 : a->n_axes], real, &v[i], err));
    }
    pt_block_put(b, "mae", pt_loss_mae(v[0], v[1]));
    pt_block_put(b, "nll", pt_loss_nll(v[0], v[1]));
    return FTH_OK;
}

/* ---- groups and canvases ---- */

/* f64 values, read now: the rest of the graph depends on them. */
static fth_status find_list(pt_block *b, fth_val v, const char *name, fth_tensor **out,
                            fth_err *err)
{
    int64_t size[FTH_MAX_AXES];
    const int n = fth_val_axes(v);
    for (int d = 0; d < n; d++) size[d] = fth_val_size(v, d);
    if (!fth_val_ok(v)) return fth_graph_check(b->g, err);
    FTH_TRY(fth_tensor_create(out, b->mem, name, FTH_F64, n, size, err));
    const fth_sink sink = fth_tensor_sink(*out);
    fth_plan *plan = fth_plan_make(b->g, &v, 1, NULL, err);
    const fth_status s = plan ? fth_run(plan, &sink, NULL, NULL, err) : err->status;
    fth_plan_destroy(plan);
    if (s != FTH_OK) {
        fth_tensor_release(*out);
        *out = NULL;
    }
    return s;
}

/* A list of numbers of the file in f64. */
static fth_status read_list(pt_block *b, const char *name, const char *axes, fth_tensor **out,
                            fth_err *err)
{
    fth_val v;
    FTH_TRY(pt_block_get(b, name, axes, FTH_F64, &v, err));
    return find_list(b, v, name, out, err);
}

static fth_status put_groups(pt_block *b, const pt_groups *g, fth_err *err)
{
    const int64_t size[3] = {g->n, g->chan, 2}, pair[2] = {g->n, 2};
    fth_val v;
    FTH_TRY(pt_block_made(b, "idx", FTH_I64, "group chan", 2, size, g->idx, &v, err));
    pt_block_put(b, "idx", v);
    FTH_TRY(pt_block_made(b, "off", FTH_F64, "group xy", 2, pair, g->off, &v, err));
    pt_block_put(b, "off", v);
    FTH_TRY(pt_block_made(b, "rel", FTH_F64, "group chan xy", 3, size, g->rel, &v, err));
    pt_block_put(b, "rel", v);
    return FTH_OK;
}

static fth_status group(pt_block *b, fth_err *err)
{
    fth_tensor *x = NULL, *y = NULL;
    pt_groups g = {0};
    const pt_group_options o = pt_group_settings(b->cfg);
    fth_status s = read_list(b, "xcoords", "scan", &x, err);
    if (s == FTH_OK) s = read_list(b, "ycoords", "scan", &y, err);
    if (s == FTH_OK)
        s = pt_groups_make(&g, b->ctx, fth_tensor_data(x), fth_tensor_data(y),
                           fth_tensor_size(x, 0), &o, err);
    if (s == FTH_OK) s = put_groups(b, &g, err);
    pt_groups_clear(&g);
    fth_tensor_release(x);
    fth_tensor_release(y);
    return s;
}

/* Patches [group row col], or [group chan row col] as [flat row col], and where they lie. */
static fth_status read_patches(pt_block *b, bool all, fth_val *v, fth_tensor **place, fth_err *err)
{
    pt_array *patches;
    fth_val rel, off;
    FTH_TRY(pt_block_read(b, "patches", &patches, err));
    if (!all) pt_array_squeeze(patches, 3);
    const fth_dtype dtype = fth_dtype_complex_of(pt_block_real(b, patches));
    FTH_TRY(
        pt_block_input(b, patches, all ? "group chan row col" : "group row col", dtype, v, err));
    if (!all) return read_list(b, "off", "group xy", place, err);
    FTH_TRY(pt_block_rel(b, FTH_F64, &rel, err));
    FTH_TRY(pt_block_get(b, "off", "group xy", FTH_F64, &off, err));
    FTH_TRY(pt_block_axis(b, "flat", patches->size[0] * patches->size[1], "all patches", err));
    *v = fth_merge(*v, "group chan", "flat");
    return find_list(b, fth_merge(fth_sub(fth_expand(off, "chan"), rel), "group chan", "flat"),
                     "places", place, err);
}

static fth_status stitch(pt_block *b, fth_err *err)
{
    fth_tensor *place = NULL;
    fth_val v, shift, origin, probe = PT_ALIKE;
    pt_canvas canvas = {0};
    const int64_t two = 2;
    const bool all = fth_config_choice(b->cfg, "stitch.patches") == 1;
    FTH_TRY(read_patches(b, all, &v, &place, err));
    const fth_dtype real = fth_dtype_real_of(fth_val_dtype(v));
    fth_status s = FTH_OK;
    if (fth_config_choice(b->cfg, "stitch.weight") == 1) s = pt_block_probe(b, real, &probe, err);
    if (s == FTH_OK)
        s = pt_canvas_make(&canvas, b->mem, fth_tensor_data(place), fth_tensor_size(place, 0),
                           fth_val_size(v, 1), b->cfg, err);
    if (s == FTH_OK)
        s = pt_block_made(b, "shift", FTH_F32, all ? "flat xy" : "group xy", 2,
                          ((int64_t[]){fth_tensor_size(place, 0), 2}), canvas.shift, &shift, err);
    if (s == FTH_OK)
        s = pt_block_made(b, "canvas_origin", FTH_F64, "xy", 1, &two, canvas.origin, &origin, err);
    if (s == FTH_OK) {
        if (real == FTH_F64) shift = fth_cast(shift, FTH_F64);
        pt_block_put(b, "canvas", pt_canvas_build(&canvas, v, shift, probe));
        pt_block_put(b, "canvas_origin", origin);
    }
    pt_canvas_clear(&canvas);
    fth_tensor_release(place);
    return s;
}

/* ---- synthetic probes and objects ---- */

/* An n by n image that `fill` writes. */
static fth_status put_made(pt_block *b, const char *name, int64_t n,
                           fth_status (*fill)(pt_block *b, int64_t n, double *out, fth_err *err),
                           fth_err *err)
{
    const int64_t size[2] = {n, n};
    double *image = NULL;
    fth_val v;
    FTH_TRY(fth_mem_take(b->mem, FTH_MEM_ANY, sizeof *image * (uint64_t)(n * n), name,
                         (void **)&image, err));
    fth_status s = fill(b, n, image, err);
    if (s == FTH_OK) s = pt_block_made(b, name, FTH_F64, "row col", 2, size, image, &v, err);
    if (s == FTH_OK) pt_block_put(b, name, v);
    fth_mem_release(b->mem, image, NULL);
    return s;
}

static fth_status fill_probe(pt_block *b, int64_t n, double *out, fth_err *err)
{
    return pt_probe_default(b->ctx, n, fth_config_real(b->cfg, "default_probe_scale"), out, err);
}

static fth_status probe(pt_block *b, fth_err *err)
{
    return put_made(b, "probe", fth_config_int(b->cfg, "N"), fill_probe, err);
}

/* As drawn: a simulation draws lines on twice the side and cuts out the middle. */
static fth_status fill_object(pt_block *b, int64_t n, double *out, fth_err *err)
{
    pt_compat random;
    pt_compat_seed(&random, (uint32_t)fth_config_int(b->cfg, "seed"));
    switch ((pt_object_kind)fth_config_choice(b->cfg, "object")) {
    case PT_OBJECT_LINES:
        return pt_lines(b->ctx, &random, n, fth_config_int(b->cfg, "lines"), out, err);
    case PT_OBJECT_GRF: return pt_field(b->ctx, &random, n, out, err);
    case PT_OBJECT_POINTS: return pt_points(b->ctx, &random, n, out, err);
    case PT_OBJECT_DIAGONALS: return pt_diagonals(b->ctx, &random, n, out, err);
    case PT_OBJECT_IMAGE:
    case PT_OBJECT_KINDS: break;
    }
    return FTH_FAIL(err, FTH_E_COMMAND, "object: an image is read from a file, not made");
}

static fth_status object(pt_block *b, fth_err *err)
{
    return put_made(b, "object", fth_config_int(b->cfg, "size"), fill_object, err);
}

/* ---- the table ---- */

const pt_block_kind pt_block_kinds[] = {
    {"translate", "images, offsets_xy", "out", false, translate},
    {"merge", "patches, coords_relative, M, probe", "merged", false, merge},
    {"extract", "region, coords_relative, N", "patches", false, extract},
    {"diffract", "obj, probe", "amplitude", false, diffract},
    {"loss", "amplitude, observed_amp", "mae, nll", false, loss},
    {"group", "xcoords, ycoords", "idx, off, rel", false, group},
    {"stitch", "patches, off, coords_relative, probe", "canvas, canvas_origin", false, stitch},
    {"probe", "nothing", "probe", true, probe},
    {"object", "nothing", "object", true, object},
    {"cnn", "X", "amp, phase", false, pt_block_cnn},
    {"step", "X, coords_relative, probe", "loss, pred, grad_w, grad.NAME", false, pt_block_step},
    {0},
};
