/* spatial_data.c - a preprocessed folder, written without the instrument. */
#include "testing/spatial/spatial_data.h"

#include "testing/io/files.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>

fth_tensor *t_spatial_golden(fth_mem *mem, const char *path, const char *name)
{
    fth_npz *npz = NULL;
    fth_source s = {0};
    fth_tensor *t = NULL;
    fth_err err = {0};
    OKE(fth_npz_open(&npz, mem, path, &err), &err);
    OKE(fth_npz_source(npz, name, &s, &err), &err);
    OKE(fth_source_load(&s, mem, name, &t, &err), &err);
    fth_source_close(&s);
    fth_npz_close(npz);
    return t;
}

static void make_folders(const char *dir)
{
    char path[4096];
    for (size_t i = 1; dir[i - 1]; i++) {
        if (dir[i] != '/' && dir[i] != '\0') continue;
        snprintf(path, sizeof path, "%.*s", (int)i, dir);
        if (mkdir(path, 0777) != 0 && errno != EEXIST) FAIL("cannot make %s", path);
    }
}

static const char *in(char path[4096], const char *dir, const char *name)
{
    snprintf(path, 4096, "%s/%s", dir, name);
    return path;
}

static void write_npy(fth_mem *mem, const char *path, fth_dtype dtype, int n_axes,
                      const int64_t *size, const void *data)
{
    const int64_t zero[2] = {0, 0};
    fth_sink sink = {0};
    fth_err err = {0};
    OKE(fth_npy_create(&sink, mem, path, dtype, n_axes, size, &err), &err);
    OKE(sink.write(sink.self, zero, size, data, &err), &err);
    OKE(sink.commit(sink.self, &err), &err);
    fth_sink_close(&sink);
}

static void write_counts(fth_mem *mem, const char *path, const float *counts, int64_t n,
                         int64_t genes)
{
    int64_t *ptr = calloc((size_t)n + 1, sizeof *ptr);
    int32_t *col = malloc((size_t)(n * genes + 1) * sizeof *col);
    float *val = malloc((size_t)(n * genes + 1) * sizeof *val);
    int64_t m = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t g = 0; g < genes; g++) {
            if (counts[i * genes + g] == 0) continue;
            col[m] = (int32_t)g;
            val[m++] = counts[i * genes + g];
        }
        ptr[i + 1] = m;
    }
    fth_csr_writer *w = NULL;
    fth_err err = {0};
    OKE(fth_csr_create_npz(&w, mem, path, n, genes, m, FTH_F32, &err), &err);
    OKE(fth_csr_append(w, n, ptr, col, val, &err), &err);
    OKE(fth_csr_commit(w, &err), &err);
    free(ptr);
    free(col);
    free(val);
}

static void write_metadata(const char *path, int64_t n, int64_t genes, int64_t groups)
{
    FILE *f = fopen(path, "w");
    if (!f) FAIL("cannot write %s", path);
    fprintf(f, "{\n  \"n_spots\": %" PRId64 ",\n  \"n_genes\": %" PRId64, n, genes);
    fprintf(f, ",\n  \"n_groups\": %" PRId64 ",\n  \"gene_names\": [", groups);
    for (int64_t g = 0; g < genes; g++) fprintf(f, "%s\n    \"gene%" PRId64 "\"", g ? "," : "", g);
    fprintf(f, "\n  ],\n  \"spot_names\": null,\n  \"group_names\": [");
    for (int64_t g = 0; g < groups; g++) fprintf(f, "%s\n    \"type%" PRId64 "\"", g ? "," : "", g);
    fprintf(f, "\n  ],\n  \"dataset\": \"toy\",\n  \"preprocessing\": {},\n"
               "  \"timestamp\": \"2025-01-01T00:00:00\"\n}\n");
    if (fclose(f) != 0) FAIL("cannot write %s", path);
}

void t_spatial_write(const char *dir, const float *xy, const float *counts, const int64_t *group,
                     int64_t n, int64_t genes, int64_t groups)
{
    fth_mem *mem = t_mem(1 << 26);
    char path[4096];
    const int64_t size[2] = {n, 2};
    make_folders(dir);
    write_npy(mem, in(path, dir, "X.npy"), FTH_F32, 2, size, xy);
    write_npy(mem, in(path, dir, "C.npy"), FTH_I64, 1, size, group);
    write_counts(mem, in(path, dir, "Y.npz"), counts, n, genes);
    write_metadata(in(path, dir, "metadata.json"), n, genes, groups);
    OK(fth_mem_destroy(mem, NULL));
}

void t_spatial_folder(const char *dir)
{
    enum { CELLS = T_SPATIAL_CELLS, COUNTS = T_SPATIAL_CELLS * T_SPATIAL_GENES };
    static float xy[2 * CELLS], counts[COUNTS];
    static int64_t group[CELLS];
    fth_mem *mem = t_mem(1 << 24);
    const char *golden = T_SPATIAL_GOLDEN "data.npz";
    fth_tensor *x = t_spatial_golden(mem, golden, "X"), *y = t_spatial_golden(mem, golden, "Y"),
               *c = t_spatial_golden(mem, golden, "C");
    double v[2];
    for (int64_t i = 0; i < COUNTS; i++) {
        t_element(fth_tensor_dtype(y), fth_tensor_data(y), i, v);
        counts[i] = (float)v[0];
    }
    for (int64_t i = 0; i < 2 * CELLS; i++) {
        t_element(fth_tensor_dtype(x), fth_tensor_data(x), i, v);
        xy[i] = (float)v[0];
    }
    for (int64_t i = 0; i < CELLS; i++) {
        t_element(fth_tensor_dtype(c), fth_tensor_data(c), i, v);
        group[i] = (int64_t)v[0];
    }
    fth_tensor_release(x);
    fth_tensor_release(y);
    fth_tensor_release(c);
    OK(fth_mem_destroy(mem, NULL));
    t_spatial_write(dir, xy, counts, group, CELLS, T_SPATIAL_GENES, T_SPATIAL_GROUPS);
}
