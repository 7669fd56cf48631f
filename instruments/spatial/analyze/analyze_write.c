/* analyze_write.c - arrays of an analysis, with their factors in the order of Moran's I. */
#include "analyze.h"

#include "../statistics/enrichment.h"
#include "../statistics/order.h"

#include <string.h>

enum { PIECE = 4096 }; /* rows written at once */

static const int64_t *order_of(const sp_analysis *a)
{
    return fth_tensor_data(a->order);
}

static fth_status path_of(char path[FTH_PATH], const sp_analysis *a, const char *name, fth_err *err)
{
    return fth_path_join(path, a->call->model_dir, name, err);
}

/* [row factor], f32 or f64, to f32 with permuted columns. */
static fth_status write_columns(const sp_analysis *a, const char *name, const fth_source *from,
                                fth_err *err)
{
    const int64_t rows = from->size[0], L = a->factors, *order = order_of(a), size[2] = {rows, L};
    const bool wide = from->dtype == FTH_F64;
    char path[FTH_PATH];
    fth_sink sink = {0};
    void *block = NULL;
    FTH_TRY(path_of(path, a, name, err));
    FTH_TRY(fth_mem_take(a->mem, FTH_MEM_META,
                         (uint64_t)(PIECE * L) * (sizeof(float) + sizeof(double)), "columns",
                         &block, err));
    double *piece = block;
    float *to = (float *)(void *)(piece + PIECE * L);
    fth_status s = fth_npy_create(&sink, a->mem, path, FTH_F32, 2, size, err);
    for (int64_t at = 0; s == FTH_OK && at < rows; at += PIECE) {
        const int64_t n = rows - at < PIECE ? rows - at : PIECE, lo[2] = {at, 0}, some[2] = {n, L};
        s = from->read(from->self, lo, some, piece, err);
        for (int64_t i = 0; s == FTH_OK && i < n * L; i++) {
            const int64_t k = i / L * L + order[i % L];
            to[i] = wide ? (float)piece[k] : ((const float *)(const void *)piece)[k];
        }
        if (s == FTH_OK) s = sink.write(sink.self, lo, some, to, err);
    }
    if (s == FTH_OK) s = sink.commit(sink.self, err);
    fth_sink_close(&sink);
    fth_mem_release(a->mem, block, NULL);
    return s;
}

static fth_status write_tensor(const sp_analysis *a, const char *name, fth_tensor *t, fth_err *err)
{
    char path[FTH_PATH];
    int64_t size[FTH_MAX_AXES];
    FTH_TRY(path_of(path, a, name, err));
    for (int i = 0; i < fth_tensor_axes(t); i++) size[i] = fth_tensor_size(t, i);
    return fth_npy_save(a->mem, path, fth_tensor_dtype(t), fth_tensor_axes(t), size,
                        fth_tensor_data(t), err);
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
    char path[FTH_PATH];
    if (s == FTH_OK) s = path_of(path, a, SP_GROUPS_Z, err);
    if (s == FTH_OK)
        s = fth_stage_wrote(a->call, FTH_FILE_OUTPUT, path, "groups of inducing points", err);
    return s;
}

/* ---- loadings ---- */

typedef struct part_of_group {
    const double *W;
    int64_t factors;
} part_of_group;

/* Always called with whole rows. */
static fth_status read_part(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    const part_of_group *p = self;
    (void)err;
    memcpy(dst, p->W + lo[0] * p->factors, (size_t)(n[0] * n[1]) * sizeof *p->W);
    return FTH_OK;
}

static fth_status write_loadings(const sp_analysis *a, fth_err *err)
{
    const fth_source all = fth_tensor_source(a->W);
    FTH_TRY(write_columns(a, SP_LOADINGS, &all, err));
    const int64_t groups = sp_analysis_has_groups(a) ? a->groups : 0;
    bool left = true; /* from an earlier analysis with more groups */
    for (int64_t g = 0; g < groups || left; g++) {
        char name[64], path[FTH_PATH];
        snprintf(name, sizeof name, "loadings_group_%lld.npy", (long long)g);
        FTH_TRY(path_of(path, a, name, err));
        if (g >= groups || a->cells_of[g] == 0) {
            left = fth_path_exists(path);
            FTH_TRY(fth_path_remove(a->mem, path, err));
            continue;
        }
        part_of_group part = {a->group_result.W + g * a->genes * a->factors, a->factors};
        const fth_source own = {.kind = "loadings of a group",
                                .self = &part,
                                .dtype = FTH_F64,
                                .n_axes = 2,
                                .size = {a->genes, a->factors},
                                .read = read_part};
        FTH_TRY(write_columns(a, name, &own, err));
        FTH_TRY(fth_stage_wrote(a->call, FTH_FILE_OUTPUT, path, "loadings of a group", err));
    }
    return FTH_OK;
}

/* Which cells training did not see; no file where it saw all. */
static fth_status write_held_out(const sp_analysis *a, fth_err *err)
{
    char path[FTH_PATH];
    fth_tensor *held = NULL;
    FTH_TRY(path_of(path, a, SP_HELD_OUT, err));
    if (a->held == 0) return fth_path_remove(a->mem, path, err); /* from an earlier analysis */
    FTH_TRY(fth_tensor_create(&held, a->mem, "held out", FTH_BOOL, 1, &a->rows, err));
    memset(fth_tensor_data(held), 0, (size_t)a->rows);
    for (int64_t i = 0; i < a->held; i++) ((uint8_t *)fth_tensor_data(held))[a->data.absent[i]] = 1;
    const fth_status s = write_tensor(a, SP_HELD_OUT, held, err);
    fth_tensor_release(held);
    return s == FTH_OK
               ? fth_stage_wrote(a->call, FTH_FILE_OUTPUT, path, "cells that were held out", err)
               : s;
}

/* Factors are those of a cell of size 1: rates of a cell are its size times factors and loadings.
 */
static fth_status write_sizes(const sp_analysis *a, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(path_of(path, a, SP_SIZE_FACTORS, err));
    if (!a->size) return fth_path_remove(a->mem, path, err); /* from an earlier analysis */
    FTH_TRY(write_tensor(a, SP_SIZE_FACTORS, a->size, err));
    return fth_stage_wrote(a->call, FTH_FILE_OUTPUT, path, "sizes of cells", err);
}

static fth_status write_dispersions(const sp_analysis *a, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(path_of(path, a, SP_DISPERSION, err));
    if (!a->theta) return fth_path_remove(a->mem, path, err);
    fth_lines t;
    fth_lines_begin(&t, a->mem);
    fth_lines_add(&t, "gene,theta\n");
    for (int64_t d = 0; d < a->genes; d++) {
        fth_lines_field(&t, fth_texts_get(a->data.gene_names, d));
        fth_lines_add(&t, ",");
        fth_lines_real(&t, ((const double *)fth_tensor_data(a->theta))[d]);
        fth_lines_add(&t, "\n");
    }
    FTH_TRY(fth_lines_save(&t, path, err));
    return fth_stage_wrote(a->call, FTH_FILE_OUTPUT, path, "dispersions of genes", err);
}

static fth_status write_lengthscales(const sp_analysis *a, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(path_of(path, a, SP_LENGTHSCALES, err));
    if (!a->model.param[SP_P_ELL]) return fth_path_remove(a->mem, path, err);
    fth_lines t;
    fth_lines_begin(&t, a->mem);
    fth_lines_add(&t, "factor_idx,lengthscale\n");
    for (int64_t l = 0; l < a->model.set.n_components; l++) { /* spatial factors come first */
        fth_lines_add(&t, "%lld,", (long long)l);
        fth_lines_real(&t, sp_model_lengthscale(&a->model, a->moran.order[l]));
        fth_lines_add(&t, "\n");
    }
    FTH_TRY(fth_lines_save(&t, path, err));
    return fth_stage_wrote(a->call, FTH_FILE_OUTPUT, path, "lengthscales of factors", err);
}

/* Of all cells: those held out are predicted. */
fth_status sp_analysis_write_arrays(sp_analysis *a, fth_err *err)
{
    const fth_source F = sp_both_source(&a->both_F, a->rows),
                     S = sp_both_source(&a->both_S, a->rows);
    FTH_TRY(write_columns(a, SP_FACTORS, &F, err));
    FTH_TRY(write_columns(a, SP_SCALES, &S, err));
    FTH_TRY(write_held_out(a, err));
    FTH_TRY(write_sizes(a, err));
    FTH_TRY(write_dispersions(a, err));
    FTH_TRY(write_lengthscales(a, err));
    FTH_TRY(write_places(a, err));
    return write_loadings(a, err);
}
