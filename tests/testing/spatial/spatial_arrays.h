/* testing/spatial/spatial_arrays.h - arrays of tests/golden/spatial, as f64 or as they are. */
#ifndef TESTING_SPATIAL_ARRAYS_H
#define TESTING_SPATIAL_ARRAYS_H

#include "testing/io/files.h"

#define SPATIAL_GOLDEN(name) "tests/golden/spatial/" name

/* One array of an .npz; the tensor is the caller's. */
static inline fth_tensor *t_npz_load(fth_mem *mem, const char *path, const char *name)
{
    fth_err err = {0};
    fth_npz *npz = NULL;
    fth_source source = {0};
    fth_tensor *t = NULL;
    OKE(fth_npz_open(&npz, mem, path, &err), &err);
    OKE(fth_npz_source(npz, name, &source, &err), &err);
    OKE(fth_source_load(&source, mem, name, &t, &err), &err);
    fth_source_close(&source);
    fth_npz_close(npz);
    return t;
}

static inline int64_t t_tensor_count(const fth_tensor *t)
{
    return (int64_t)(fth_tensor_bytes(t) / (uint64_t)fth_dtype_size(fth_tensor_dtype(t)));
}

/* The numbers of an array as f64, to be freed; *n (may be NULL) is how many. */
static inline double *t_npz_f64(const char *path, const char *name, int64_t *n)
{
    fth_mem *mem = t_mem(64 << 20);
    fth_tensor *t = t_npz_load(mem, path, name);
    const int64_t count = t_tensor_count(t);
    double *v = malloc(((size_t)count + !count) * sizeof *v);
    for (int64_t i = 0; i < count; i++) {
        double pair[2];
        t_element(fth_tensor_dtype(t), fth_tensor_data(t), i, pair);
        v[i] = pair[0];
    }
    if (n) *n = count;
    fth_tensor_release(t);
    OK(fth_mem_destroy(mem, NULL));
    return v;
}

/* The same as f32. */
static inline float *t_npz_f32(const char *path, const char *name, int64_t *n)
{
    int64_t count;
    double *v = t_npz_f64(path, name, &count);
    float *f = malloc(((size_t)count + !count) * sizeof *f);
    for (int64_t i = 0; i < count; i++) f[i] = (float)v[i];
    free(v);
    if (n) *n = count;
    return f;
}

#endif
