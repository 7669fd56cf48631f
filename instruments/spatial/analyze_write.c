/* analyze_write.c - arrays of an analysis, with their factors in the order of Moran's I. */
#include "analyze.h"

#include "enrichment.h"
#include "order.h"

#include <string.h>
#include <unistd.h>

enum { PIECE = 4096 }; /* rows written at once */

static const int64_t *order_of(const sp_analysis *a)
{
    return fth_tensor_data(a->order);
}

static fth_status path_of(char path[SP_PATH], const sp_analysis *a, const char *name, fth_err *err)
{
    return sp_path(path, a->call->model_dir, name, err);
}

/* [row factor] with permuted columns; `from` is f32, or f64 with `wide`. */
static fth_status write_columns(const sp_analysis *a, const char *name, const void *from, bool wide,
                                int64_t rows, fth_err *err)
{
    const int64_t L = a->factors, *order = order_of(a), size[2] = {rows, L};
    char path[SP_PATH];
    fth_sink sink = {0};
    void *block = NULL;
    FTH_TRY(path_of(path, a, name, err));
    FTH_TRY(fth_mem_take(a->mem, FTH_MEM_META, (uint64_t)(PIECE * L) * sizeof(float), "columns",
                         &block, err));
    float *to = block;
    fth_status s = fth_npy_create(&sink, a->mem, path, FTH_F32, 2, size, err);
    for (int64_t at = 0; s == FTH_OK && at < rows; at += PIECE) {
        const int64_t n = rows - at < PIECE ? rows - at : PIECE;
        for (int64_t i = 0; i < n; i++)
            for (int64_t l = 0; l < L; l++) {
                const int64_t k = (at + i) * L + order[l];
                to[i * L + l] = wide ? (float)((const double *)from)[k] : ((const float *)from)[k];
            }
        s = sink.write(sink.self, (int64_t[2]){at, 0}, (int64_t[2]){n, L}, to, err);
    }
    if (s == FTH_OK) s = sink.commit(sink.self, err);
    fth_sink_close(&sink);
    fth_mem_release(a->mem, block, NULL);
    return s;
}

static fth_status write_tensor(const sp_analysis *a, const char *name, fth_tensor *t, fth_err *err)
{
    char path[SP_PATH];
    fth_sink sink = {0};
    int64_t size[FTH_MAX_AXES];
    FTH_TRY(path_of(path, a, name, err));
    for (int i = 0; i < fth_tensor_axes(t); i++) size[i] = fth_tensor_size(t, i);
    FTH_TRY(
        fth_npy_create(&sink, a->mem, path, fth_tensor_dtype(t), fth_tensor_axes(t), size, err));
    const fth_status s = fth_sink_store(&sink, t, err);
    fth_sink_close(&sink);
    return s;
}

/* ---- inducing points ---- */

static fth_status write_places(const sp_analysis *a, fth_err *err)
{
    const sp_model *m = &a->model;
    if (!m->Z) return FTH_OK;
    FTH_TRY(write_tensor(a, SP_Z, m->Z, err));
    if (!m->groupsZ) return FTH_OK;
    fth_tensor *wide = NULL;
    const int64_t M = fth_tensor_size(m->groupsZ, 0);
    FTH_TRY(fth_tensor_create(&wide, a->mem, "groupsZ", FTH_I64, 1, &M, err));
    for (int64_t i = 0; i < M; i++)
        ((int64_t *)fth_tensor_data(wide))[i] = ((const int32_t *)fth_tensor_data(m->groupsZ))[i];
    fth_status s = write_tensor(a, SP_GROUPS_Z, wide, err);
    fth_tensor_release(wide);
    char path[SP_PATH];
    if (s == FTH_OK) s = path_of(path, a, SP_GROUPS_Z, err);
    if (s == FTH_OK)
        s = fth_stage_wrote(a->call, FTH_FILE_OUTPUT, path, "groups of inducing points", err);
    return s;
}

/* ---- loadings ---- */

static fth_status write_loadings(const sp_analysis *a, fth_err *err)
{
    FTH_TRY(write_columns(a, SP_LOADINGS, fth_tensor_data(a->W), false, a->genes, err));
    const int64_t groups = sp_analysis_has_groups(a) ? a->groups : 0;
    bool left = true; /* by an analysis of more groups */
    for (int64_t g = 0; g < groups || left; g++) {
        char name[64], path[SP_PATH];
        snprintf(name, sizeof name, "loadings_group_%lld.npy", (long long)g);
        FTH_TRY(path_of(path, a, name, err));
        if (g >= groups || a->cells_of[g] == 0) {
            left = unlink(path) == 0;
            continue;
        }
        const double *W = a->group_result.W + g * a->genes * a->factors;
        FTH_TRY(write_columns(a, name, W, true, a->genes, err));
        FTH_TRY(fth_stage_wrote(a->call, FTH_FILE_OUTPUT, path, "loadings of a group", err));
    }
    return FTH_OK;
}

fth_status sp_analysis_write_arrays(sp_analysis *a, fth_err *err)
{
    FTH_TRY(write_columns(a, SP_FACTORS, fth_tensor_data(a->F), false, a->cells, err));
    FTH_TRY(write_columns(a, SP_SCALES, fth_tensor_data(a->S), false, a->cells, err));
    FTH_TRY(write_places(a, err));
    return write_loadings(a, err);
}
