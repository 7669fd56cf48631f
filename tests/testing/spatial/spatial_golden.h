/* testing/spatial/spatial_golden.h - arrays of the golden set, and models made of them. */
#ifndef FATHOM_TESTING_SPATIAL_GOLDEN_H
#define FATHOM_TESTING_SPATIAL_GOLDEN_H

#include "testing/test.h"

#include "instruments/spatial/prior/prior.h"

#include <math.h>

#define SG_DIR "tests/golden/spatial/"

static inline fth_context *sg_context(int threads, uint64_t budget, const char *scratch)
{
    fth_context *ctx = NULL;
    fth_err err = {0};
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = threads;
    opt.mem.budget_bytes = budget ? budget : (uint64_t)256 << 20;
    opt.scratch_dir = scratch;
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    return ctx;
}

static inline double sg_at(fth_tensor *t, int64_t i)
{
    const void *d = fth_tensor_data(t);
    const fth_dtype type = fth_tensor_dtype(t);
    if (type == FTH_F32) return (double)((const float *)d)[i];
    if (type == FTH_F64) return ((const double *)d)[i];
    if (type == FTH_I32) return (double)((const int32_t *)d)[i];
    return (double)((const int64_t *)d)[i];
}

static inline int64_t sg_count(fth_tensor *t)
{
    return (int64_t)fth_tensor_bytes(t) / fth_dtype_size(fth_tensor_dtype(t));
}

static inline bool sg_has(fth_mem *mem, const char *file, const char *name)
{
    fth_npz *npz = NULL;
    fth_err err = {0};
    char path[256];
    snprintf(path, sizeof path, SG_DIR "%s.npz", file);
    OKE(fth_npz_open(&npz, mem, path, &err), &err);
    bool has = false;
    for (int64_t i = 0; i < fth_npz_count(npz); i++)
        has = has || strcmp(fth_npz_name(npz, i), name) == 0;
    fth_npz_close(npz);
    return has;
}

/* An array of SG_DIR/file.npz, cast to `to`. */
static inline fth_tensor *sg_load(fth_mem *mem, const char *file, const char *name, fth_dtype to)
{
    fth_npz *npz = NULL;
    fth_source source = {0};
    fth_tensor *raw = NULL, *out = NULL;
    fth_err err = {0};
    char path[256];
    int64_t size[FTH_MAX_AXES];
    snprintf(path, sizeof path, SG_DIR "%s.npz", file);
    OKE(fth_npz_open(&npz, mem, path, &err), &err);
    OKE(fth_npz_source(npz, name, &source, &err), &err);
    OKE(fth_source_load(&source, mem, name, &raw, &err), &err);
    for (int i = 0; i < source.n_axes; i++) size[i] = source.size[i];
    OKE(fth_tensor_create(&out, mem, name, to, source.n_axes, size, &err), &err);
    void *d = fth_tensor_data(out);
    for (int64_t i = 0; i < sg_count(out); i++) {
        const double v = sg_at(raw, i);
        if (to == FTH_F32) ((float *)d)[i] = (float)v;
        if (to == FTH_F64) ((double *)d)[i] = v;
        if (to == FTH_I32) ((int32_t *)d)[i] = (int32_t)v;
        if (to == FTH_I64) ((int64_t *)d)[i] = (int64_t)v;
    }
    fth_tensor_release(raw);
    fth_source_close(&source);
    fth_npz_close(npz);
    return out;
}

static inline double sg_scalar(fth_mem *mem, const char *file, const char *name)
{
    fth_tensor *t = sg_load(mem, file, name, FTH_F64);
    const double v = sg_at(t, 0);
    fth_tensor_release(t);
    return v;
}

/* Every element within `tol` of the largest of `want`. */
static inline void sg_near(const char *what, fth_tensor *got, fth_tensor *want, double tol)
{
    double most = 0.0, off = 0.0;
    EQ_I64(sg_count(got), sg_count(want));
    for (int64_t i = 0; i < sg_count(want); i++) most = fmax(most, fabs(sg_at(want, i)));
    for (int64_t i = 0; i < sg_count(want); i++) {
        const double d = fabs(sg_at(got, i) - sg_at(want, i));
        off = d <= off ? off : d;
    }
    if (!(off <= tol * most)) FAIL("%s: off by %g of %g", what, off, most);
}

#endif
