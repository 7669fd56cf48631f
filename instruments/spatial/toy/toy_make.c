/* toy_make.c - synthetic cells as a folder that stages read, with the truth beside them. */
#include "toy.h"

#include "../export/export.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

sp_cov sp_toy_cov(const sp_toy *t)
{
    return (sp_cov){.kernel = SP_MATERN32,
                    .sigma = 1,
                    .lengthscale = t->lengthscale,
                    .groups = true,
                    .alpha = t->alpha,
                    .gap = t->plane.gap,
                    .n_groups = t->groups};
}

/* ---- factors ---- */

/* The prior is symmetric: choose the sign with a positive sum. */
static void flip(sp_toy *t)
{
    double *projected = t->projected ? fth_tensor_data(t->projected) : NULL;
    for (int64_t l = 0; l < t->factors; l++) {
        double sum = 0;
        for (int64_t i = 0; i < t->cells; i++) sum += (double)t->factor[i * t->factors + l];
        for (int64_t i = l; sum < 0 && i < t->cells * t->factors; i += t->factors) {
            t->factor[i] = -t->factor[i];
            if (projected) projected[i] = -projected[i];
        }
    }
}

fth_status sp_toy_draw(sp_toy *t, fth_err *err)
{
    FTH_TRY(t->n_lengths > 1 ? sp_toy_draw_lengths(t, err)
            : t->exact       ? sp_toy_draw_exact(t, err)
                             : sp_toy_draw_near(t, err));
    flip(t);
    return FTH_OK;
}

void sp_toy_draw_others(sp_toy *t)
{
    for (int64_t i = 0; i < t->cells * t->others; i++)
        t->other[i] =
            (float)fth_random_normal_at(t->seed, i % t->others, SP_TOY_OTHER, i / t->others);
}

fth_status sp_toy_write_group(const sp_toy *t, int64_t g, const char *path, fth_err *err)
{
    fth_sink sink = {0};
    const int64_t size[2] = {t->cells, t->factors};
    if (t->n_lengths > 1) return sp_toy_write_group_lengths(t, g, path, err);
    FTH_TRY(fth_npy_create(&sink, t->mem, path, FTH_F32, 2, size, err));
    fth_status s;
    if (t->exact) {
        s = sp_toy_write_group_exact(t, g, &sink, err); /* a run commits its sinks */
    } else {
        s = sp_toy_write_group_near(t, g, &sink, err);
        if (s == FTH_OK) s = sink.commit(sink.self, err);
    }
    fth_sink_close(&sink);
    return s;
}

/* ---- files ---- */

static fth_status write_array(const sp_toy *t, const char *dir, const char *name, fth_dtype dtype,
                              int n_axes, const int64_t *size, const void *data, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(fth_path_join(path, dir, name, err));
    return fth_npy_save(t->mem, path, dtype, n_axes, size, data, err);
}

static fth_status write_codes(const sp_toy *t, const char *dir, fth_err *err)
{
    int64_t *wide = NULL;
    FTH_TRY(fth_mem_take(t->mem, FTH_MEM_ANY, sizeof *wide * (uint64_t)t->cells, "codes",
                         (void **)&wide, err));
    for (int64_t i = 0; i < t->cells; i++) wide[i] = t->group[i];
    fth_status s = write_array(t, dir, SP_C, FTH_I64, 1, &t->cells, wide, err);
    for (int64_t i = 0; i < t->cells; i++) wide[i] = sp_toy_section(t, i);
    if (s == FTH_OK && t->sections > 0)
        s = write_array(t, dir, SP_S, FTH_I64, 1, &t->cells, wide, err);
    fth_mem_release(t->mem, wide, NULL);
    return s;
}

static void put_names(fth_json_writer *w, const char *key, const char *stem, int64_t n)
{
    char name[48];
    fth_json_open(w, key, '[');
    for (int64_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%s_%lld", stem, (long long)i);
        fth_json_text(w, NULL, name);
    }
    fth_json_close(w);
}

/* All options that determine the result. */
static void put_options(fth_json_writer *w, const sp_toy *t)
{
    fth_json_open(w, "toy", '{');
    fth_json_int(w, "side", t->side);
    fth_json_int(w, "factors", t->factors);
    if (t->others > 0) fth_json_int(w, "nonspatial_factors", t->others);
    fth_json_int(w, "missing_groups", t->missing);
    if (t->n_lengths > 1) {
        fth_json_open(w, "lengthscale", '[');
        for (int k = 0; k < t->n_lengths; k++) fth_json_real(w, NULL, t->length[k]);
        fth_json_close(w);
    } else
        fth_json_real(w, "lengthscale", t->lengthscale);
    fth_json_real(w, "alpha", t->alpha);
    fth_json_real(w, "jitter", t->jitter);
    fth_json_real(w, "scale", t->scale);
    if (t->dispersion > 0) fth_json_real(w, "dispersion", t->dispersion);
    if (t->depth > 0) fth_json_real(w, "depth", t->depth);
    fth_json_int(w, "seed", t->seed);
    fth_json_text(w, "sampler", t->exact ? "exact" : "near");
    fth_json_close(w);
}

static fth_status write_metadata(const sp_toy *t, const char *dir, fth_err *err)
{
    char path[FTH_PATH];
    fth_json_writer w;
    FTH_TRY(fth_path_join(path, dir, SP_METADATA, err));
    fth_json_begin(&w, t->mem, true);
    fth_json_open(&w, NULL, '{');
    fth_json_int(&w, "n_spots", t->cells);
    fth_json_int(&w, "n_genes", t->genes);
    fth_json_int(&w, "n_groups", t->groups);
    put_names(&w, "gene_names", "gene", t->genes);
    fth_json_null(&w, "spot_names");
    put_names(&w, "group_names", "group", t->groups);
    if (t->sections > 0) {
        sp_sections_put_names(&w, SP_SECTION_NAMES, &t->plane);
        sp_sections_put(&w, SP_SECTIONS, &t->plane);
        fth_json_real(&w, "scale", 1);
    }
    fth_json_text(&w, "dataset", "toy");
    fth_json_open(&w, "preprocessing", '{');
    fth_json_close(&w);
    put_options(&w, t);
    if (t->image) {
        sp_image image;
        sp_toy_image_place(t, &image);
        sp_image_put(&w, "image", &image, SP_IMAGE, NULL, "toy");
    }
    fth_json_close(&w);
    return fth_json_save(&w, path, err);
}

/* Sizes of the cells and dispersions of the genes, where they have any. */
static fth_status write_sizes(const sp_toy *t, const char *dir, fth_err *err)
{
    float *v = NULL;
    const int64_t most = t->cells > t->genes ? t->cells : t->genes;
    FTH_TRY(
        fth_mem_take(t->mem, FTH_MEM_ANY, sizeof *v * (uint64_t)most, "sizes", (void **)&v, err));
    fth_status s = FTH_OK;
    for (int64_t i = 0; i < t->cells; i++) v[i] = (float)sp_toy_size(t, i);
    if (t->depth > 0)
        s = write_array(t, dir, "ground_truth_sizes.npy", FTH_F32, 1, &t->cells, v, err);
    for (int64_t i = 0; i < t->genes; i++) v[i] = (float)t->dispersion;
    if (s == FTH_OK && t->dispersion > 0)
        s = write_array(t, dir, "ground_truth_dispersions.npy", FTH_F32, 1, &t->genes, v, err);
    fth_mem_release(t->mem, v, NULL);
    return s;
}

/* Those without positions behind the others. */
static fth_status write_factors(const sp_toy *t, const char *dir, fth_err *err)
{
    const int64_t L = t->factors, T = t->others, size[2] = {t->cells, L + T};
    const char *name = "ground_truth_factors.npy";
    float *all = NULL;
    if (T == 0) return write_array(t, dir, name, FTH_F32, 2, size, t->factor, err);
    FTH_TRY(fth_mem_take(t->mem, FTH_MEM_ANY, sizeof *all * (uint64_t)(t->cells * (L + T)),
                         "all factors", (void **)&all, err));
    for (int64_t i = 0; i < t->cells; i++) {
        memcpy(all + i * (L + T), t->factor + i * L, sizeof *all * (size_t)L);
        memcpy(all + i * (L + T) + L, t->other + i * T, sizeof *all * (size_t)T);
    }
    const fth_status s = write_array(t, dir, name, FTH_F32, 2, size, all, err);
    fth_mem_release(t->mem, all, NULL);
    return s;
}

static fth_status write_lengths(const sp_toy *t, const char *dir, fth_err *err)
{
    double *v = NULL;
    FTH_TRY(fth_mem_take(t->mem, FTH_MEM_ANY, sizeof *v * (uint64_t)t->factors, "lengthscales",
                         (void **)&v, err));
    for (int64_t l = 0; l < t->factors; l++) v[l] = t->length[l % t->n_lengths];
    const fth_status s =
        write_array(t, dir, "ground_truth_lengthscales.npy", FTH_F64, 1, &t->factors, v, err);
    fth_mem_release(t->mem, v, NULL);
    return s;
}

static fth_status write_truth(const sp_toy *t, const char *dir, fth_err *err)
{
    const int64_t loadings[2] = {t->genes, t->factors + t->others};
    FTH_TRY(write_factors(t, dir, err));
    FTH_TRY(
        write_array(t, dir, "ground_truth_loadings.npy", FTH_F32, 2, loadings, t->loading, err));
    for (int64_t g = 0; g < t->groups; g++) {
        char name[64], path[FTH_PATH];
        snprintf(name, sizeof name, "ground_truth_factors_group_%lld.npy", (long long)g);
        FTH_TRY(fth_path_join(path, dir, name, err));
        FTH_TRY(sp_toy_write_group(t, g, path, err));
    }
    if (t->n_lengths > 1) FTH_TRY(write_lengths(t, dir, err));
    return t->depth > 0 || t->dispersion > 0 ? write_sizes(t, dir, err) : FTH_OK;
}

/* The folder that was written, as one file. */
static fth_status put_h5ad(fth_h5_writer *w, const sp_toy *t, const char *dir, fth_err *err)
{
    sp_data data;
    void *kept = NULL;
    FTH_TRY(sp_data_open(&data, t->mem, dir, err));
    fth_status s = sp_h5ad_put_data(w, t->mem, &data, err);
    if (s == FTH_OK) /* the frame of cells says which of them were kept: all */
        s = fth_mem_take(t->mem, FTH_MEM_ANY, (uint64_t)t->cells, "kept", &kept, err);
    if (s == FTH_OK) {
        memset(kept, 1, (size_t)t->cells);
        s = sp_h5ad_put_array(w, "/obs/fathom_kept", FTH_BOOL, 1, &t->cells, kept, err);
    }
    fth_mem_release(t->mem, kept, NULL);
    sp_data_close(&data);
    return s;
}

static fth_status write_h5ad(const sp_toy *t, const char *dir, const char *path, fth_err *err)
{
    fth_h5_writer *w = NULL;
    FTH_TRY(fth_h5_create(&w, t->mem, path, err));
    const fth_status s = put_h5ad(w, t, dir, err);
    if (s == FTH_OK) return fth_h5_commit(w, err);
    fth_h5_abandon(w);
    return s;
}

/* ---- all of it ---- */

/* Of an earlier run with sections. */
static fth_status forget_sections(const sp_toy *t, const char *dir, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(fth_path_join(path, dir, SP_S, err));
    return t->sections > 0 ? FTH_OK : fth_path_remove(t->mem, path, err);
}

static fth_status write_all(sp_toy *t, const char *dir, const char *h5ad, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(fth_path_join(path, dir, SP_Y, err));
    /* Stages consider a folder with counts complete: remove those of an earlier run first. */
    FTH_TRY(fth_path_remove(t->mem, path, err));
    FTH_TRY(forget_sections(t, dir, err));
    FTH_TRY(sp_toy_place(t, err));
    FTH_TRY(sp_toy_draw(t, err));
    sp_toy_draw_others(t);
    FTH_TRY(sp_toy_load(t, err));
    FTH_TRY(write_array(t, dir, SP_X, FTH_F32, 2, (int64_t[]){t->cells, 2}, t->xy, err));
    FTH_TRY(write_codes(t, dir, err));
    FTH_TRY(write_truth(t, dir, err));
    if (t->image) FTH_TRY(sp_toy_write_image(t, dir, err));
    FTH_TRY(write_metadata(t, dir, err));
    FTH_TRY(sp_toy_write_counts(t, path, err));
    return h5ad ? write_h5ad(t, dir, h5ad, err) : FTH_OK;
}

static uint64_t held_bytes(const sp_toy *t)
{
    const uint64_t N = (uint64_t)t->cells, L = (uint64_t)(t->factors + t->others);
    return sizeof(int64_t) * (uint64_t)t->groups +
           sizeof(float) * (2 * N + N * L + L * (uint64_t)t->genes) + sizeof(int32_t) * N;
}

static fth_status take(sp_toy *t, void **memory, fth_err *err)
{
    const uint64_t N = (uint64_t)t->cells, G = (uint64_t)t->groups, L = (uint64_t)t->factors;
    FTH_TRY(fth_mem_take(t->mem, FTH_MEM_ANY, held_bytes(t), "synthetic cells", memory, err));
    t->size_of = *memory;
    t->xy = (float *)(void *)(t->size_of + G);
    t->factor = t->xy + 2 * N;
    t->other = t->factor + N * L;
    t->loading = t->other + N * (uint64_t)t->others;
    t->group = (int32_t *)(void *)(t->loading + (L + (uint64_t)t->others) * (uint64_t)t->genes);
    return FTH_OK;
}

fth_status sp_toy_make(sp_toy *t, const char *dir, const char *h5ad, fth_err *err)
{
    void *memory = NULL;
    FTH_TRY(fth_folder_make(t->mem, dir, err));
    FTH_TRY(take(t, &memory, err));
    const fth_status s = write_all(t, dir, h5ad, err);
    sp_sections_clear(&t->plane);
    fth_tensor_release(t->projected);
    t->projected = NULL;
    fth_mem_release(t->mem, memory, NULL);
    return s;
}

/* ---- the same, only told ---- */

static fth_status tell_files(const sp_toy *t, fth_answer *a, const char *dir, const char *h5ad,
                             fth_err *err)
{
    const int64_t all = t->factors + t->others, xy[2] = {t->cells, 2},
                  factors[2] = {t->cells, t->factors}, truth[2] = {t->cells, all},
                  loadings[2] = {t->genes, all};
    const fth_file_kind out = FTH_FILE_OUTPUT;
    FTH_TRY(sp_answer_array(a, out, dir, SP_X, FTH_F32, 2, xy, err));
    FTH_TRY(sp_answer_array(a, out, dir, SP_C, FTH_I64, 1, &t->cells, err));
    if (t->sections > 0) FTH_TRY(sp_answer_array(a, out, dir, SP_S, FTH_I64, 1, &t->cells, err));
    FTH_TRY(sp_answer_array(a, out, dir, "ground_truth_factors.npy", FTH_F32, 2, truth, err));
    FTH_TRY(sp_answer_array(a, out, dir, "ground_truth_loadings.npy", FTH_F32, 2, loadings, err));
    for (int64_t g = 0; g < t->groups; g++) {
        char name[64];
        snprintf(name, sizeof name, "ground_truth_factors_group_%lld.npy", (long long)g);
        FTH_TRY(sp_answer_array(a, out, dir, name, FTH_F32, 2, factors, err));
    }
    if (t->n_lengths > 1)
        FTH_TRY(sp_answer_array(a, out, dir, "ground_truth_lengthscales.npy", FTH_F64, 1,
                                &t->factors, err));
    if (t->depth > 0)
        FTH_TRY(sp_answer_array(a, out, dir, "ground_truth_sizes.npy", FTH_F32, 1, &t->cells, err));
    if (t->dispersion > 0)
        FTH_TRY(sp_answer_array(a, out, dir, "ground_truth_dispersions.npy", FTH_F32, 1, &t->genes,
                                err));
    if (t->image) FTH_TRY(sp_answer_named(a, out, dir, SP_IMAGE, "the tissue", err));
    FTH_TRY(sp_answer_named(a, out, dir, SP_METADATA, "names and options", err));
    FTH_TRY(sp_answer_named(a, out, dir, SP_Y, "sparse counts", err));
    if (h5ad) fth_answer_file(a, out, h5ad, -1, "all of it as one file");
    return FTH_OK;
}

fth_status sp_toy_tell(sp_toy *t, fth_answer *a, const char *dir, const char *h5ad, fth_err *err)
{
    void *memory = NULL;
    FTH_TRY(tell_files(t, a, dir, h5ad, err));
    if (!a->plan) return FTH_OK;
    const uint64_t truth = t->others > 0
                               ? sizeof(float) * (uint64_t)(t->cells * (t->factors + t->others))
                               : 0,
                   most = sp_toy_counts_bytes(t), counts = most > truth ? most : truth,
                   near = t->exact ? 0 : sp_toy_near_bytes(t), image = t->image ? 8 << 20 : 0;
    FTH_TRY(take(t, &memory, err));
    t->answer = a;
    const fth_status s = t->exact ? sp_toy_draw_exact(t, err) : FTH_OK;
    t->answer = NULL;
    fth_tensor_release(t->projected);
    t->projected = NULL;
    fth_mem_release(t->mem, memory, NULL);
    if (s == FTH_OK)
        fth_answer_memory(
            a, held_bytes(t) + sp_toy_lengths_bytes(t) + (counts > near ? counts : near) + image,
            t->exact ? "planned for the factors, and all cells beside it"
                     : "estimated: all cells, and those being drawn");
    return s;
}
