/* testing/spatial/spatial_results.h - files as the stages before the figures leave them, small and
 * smooth.
 *
 * Made from a seed: `cells` on a jittered grid, groups in turn, counts of a Poisson kind, factors
 * that are hills. Written with the library, read by whoever is tested.
 */
#ifndef TESTING_SPATIAL_RESULTS_H
#define TESTING_SPATIAL_RESULTS_H

#include "instruments/spatial/spatial.h"
#include "testing/io/files.h"

#include <math.h>
#include <sys/stat.h>

typedef struct t_results {
    const char *dir;   /* output directory; made */
    const char *model; /* "mggp_svgp" */
    int64_t cells, genes, factors, groups, points, frames;
    const char *const *group_names; /* NULL: "group 0", ... */
    const char *const *gene_names;  /* NULL: "Gene0", ... */
    const char *const *cell_names;  /* NULL: cells have none */
    int dpi;                        /* of figures; 0: 75 */
    const char *figures;            /* more keys of that section: "which: all"; NULL: none */
    const char *display;            /* member of metadata.json: "{\"unit\": ...}"; NULL: none */
} t_results;

static inline void t_results_path(const t_results *r, char path[FTH_PATH], const char *folder,
                                  const char *name)
{
    if (folder[0])
        snprintf(path, FTH_PATH, "%s/%s/%s", r->dir, folder, name);
    else
        snprintf(path, FTH_PATH, "%s/%s", r->dir, name);
}

/* Position of a cell; x to the right, y down. */
static inline void t_results_place(const t_results *r, int64_t i, float xy[2])
{
    const int64_t side = (int64_t)ceil(sqrt((double)r->cells));
    xy[0] = (float)(i % side) * 10 + (float)(i * 7 % 5) * 0.5f - 50;
    xy[1] = (float)(i / side) * 10 + (float)(i * 3 % 5) * 0.5f - 50;
}

static inline float t_results_factor(const t_results *r, int64_t cell, int64_t l)
{
    float xy[2];
    t_results_place(r, cell, xy);
    const double dx = (double)xy[0] + 50 - 17 * (double)l, dy = (double)xy[1] + 50 - 11 * (double)l;
    return (float)(0.3 + 2 * exp(-(dx * dx + dy * dy) / 1500));
}

static inline void t_results_npy(const t_results *r, fth_mem *mem, const char *folder,
                                 const char *name, fth_dtype dtype, int n_axes, const int64_t *size,
                                 const void *data)
{
    char path[FTH_PATH];
    const int64_t zero[4] = {0};
    fth_sink sink;
    t_results_path(r, path, folder, name);
    OK(fth_npy_create(&sink, mem, path, dtype, n_axes, size, NULL));
    OK(sink.write(sink.self, zero, size, data, NULL));
    OK(sink.commit(sink.self, NULL));
    fth_sink_close(&sink);
}

static inline void t_results_names(const t_results *r, fth_mem *mem)
{
    char path[FTH_PATH], name[32];
    fth_json_writer w;
    fth_json_begin(&w, mem, true);
    fth_json_open(&w, NULL, '{');
    fth_json_int(&w, "n_spots", r->cells);
    fth_json_int(&w, "n_genes", r->genes);
    fth_json_int(&w, "n_groups", r->groups);
    fth_json_open(&w, "gene_names", '[');
    for (int64_t g = 0; g < r->genes; g++) {
        snprintf(name, sizeof name, "Gene%lld", (long long)g);
        fth_json_text(&w, NULL, r->gene_names ? r->gene_names[g] : name);
    }
    fth_json_close(&w);
    if (!r->cell_names) fth_json_null(&w, "spot_names");
    if (r->cell_names) fth_json_open(&w, "spot_names", '[');
    for (int64_t i = 0; r->cell_names && i < r->cells; i++)
        fth_json_text(&w, NULL, r->cell_names[i]);
    if (r->cell_names) fth_json_close(&w);
    fth_json_open(&w, "group_names", '[');
    for (int64_t g = 0; g < r->groups; g++) {
        snprintf(name, sizeof name, "group %lld", (long long)g);
        fth_json_text(&w, NULL, r->group_names ? r->group_names[g] : name);
    }
    fth_json_close(&w);
    fth_json *display = NULL;
    if (r->display) {
        OK(fth_json_parse(&display, mem, "display", r->display, strlen(r->display), NULL));
        fth_json_copy(&w, "display", fth_json_root(display));
        fth_json_destroy(display);
    }
    fth_json_text(&w, "dataset", "arrays");
    fth_json_open(&w, "preprocessing", '{');
    fth_json_close(&w);
    fth_json_text(&w, "timestamp", "2026-01-01T00:00:00");
    fth_json_close(&w);
    t_results_path(r, path, SP_PREPROCESSED, SP_METADATA);
    OK(fth_json_save(&w, path, NULL));
}

static inline float t_results_count(int64_t cell, int64_t gene)
{
    return (float)((cell * 13 + gene * 29) % 7 > 3 ? 1 + (cell + gene) % 4 : 0);
}

static inline void t_results_counts(const t_results *r, fth_mem *mem)
{
    char path[FTH_PATH];
    fth_csr_writer *w = NULL;
    int64_t entries = 0;
    for (int64_t i = 0; i < r->cells; i++)
        for (int64_t g = 0; g < r->genes; g++) entries += t_results_count(i, g) > 0;
    t_results_path(r, path, SP_PREPROCESSED, SP_Y);
    OK(fth_csr_create_npz(&w, mem, path, r->cells, r->genes, entries, FTH_F32, NULL));
    int32_t *col = malloc((size_t)r->genes * sizeof *col);
    float *val = malloc((size_t)r->genes * sizeof *val);
    for (int64_t i = 0; i < r->cells; i++) {
        int64_t n = 0;
        for (int64_t g = 0; g < r->genes; g++)
            if (t_results_count(i, g) > 0) col[n] = (int32_t)g, val[n++] = t_results_count(i, g);
        OK(fth_csr_append(w, 1, (int64_t[]){0, n}, col, val, NULL));
    }
    OK(fth_csr_commit(w, NULL));
    free(col);
    free(val);
}

static inline void t_results_preprocessed(const t_results *r, fth_mem *mem)
{
    const int64_t n = r->cells;
    float *xy = malloc((size_t)n * 2 * sizeof *xy);
    int64_t *group = malloc((size_t)n * sizeof *group);
    for (int64_t i = 0; i < n; i++) {
        t_results_place(r, i, xy + 2 * i);
        group[i] = i * i % 11 % r->groups;
    }
    t_results_npy(r, mem, SP_PREPROCESSED, SP_X, FTH_F32, 2, (int64_t[]){n, 2}, xy);
    t_results_npy(r, mem, SP_PREPROCESSED, SP_C, FTH_I64, 1, &n, group);
    free(xy);
    free(group);
    t_results_names(r, mem);
    t_results_counts(r, mem);
}

/* A file [rows][cols] of f32 whose numbers are 0.05 + a pattern that `salt` moves. */
static inline void t_results_pattern(const t_results *r, fth_mem *mem, const char *name,
                                     int64_t rows, int64_t cols, int64_t salt)
{
    float *v = malloc((size_t)(rows * cols) * sizeof *v);
    for (int64_t i = 0; i < rows * cols; i++)
        v[i] = 0.05f + (float)((i * 37 + salt * 101 + i / 5) % 97) / 97;
    t_results_npy(r, mem, r->model, name, FTH_F32, 2, (int64_t[]){rows, cols}, v);
    free(v);
}

static inline void t_results_factors(const t_results *r, fth_mem *mem, const char *name,
                                     float scale)
{
    float *v = malloc((size_t)(r->cells * r->factors) * sizeof *v);
    for (int64_t i = 0; i < r->cells * r->factors; i++)
        v[i] = scale * t_results_factor(r, i / r->factors, i % r->factors);
    t_results_npy(r, mem, r->model, name, FTH_F32, 2, (int64_t[]){r->cells, r->factors}, v);
    free(v);
}

static inline void t_results_training(const t_results *r, fth_mem *mem)
{
    const int64_t L = r->factors, n = r->points, iterations = 40;
    double elbo[40];
    for (int i = 0; i < 40; i++) elbo[i] = -5e3 - 2e5 / (i + 1);
    t_results_npy(r, mem, r->model, SP_ELBO_NPY, FTH_F64, 1, &iterations, elbo);
    float *z = malloc((size_t)n * 2 * sizeof *z), *lu = malloc((size_t)(L * n * n) * sizeof *lu);
    int64_t *group = malloc((size_t)n * sizeof *group);
    for (int64_t i = 0; i < n; i++) {
        t_results_place(r, i * r->cells / n, z + 2 * i);
        group[i] = i % r->groups;
    }
    for (int64_t i = 0; i < L * n * n; i++) lu[i] = i / n % n >= i % n ? (float)(i % 13) / 13 : 0;
    t_results_npy(r, mem, r->model, SP_Z, FTH_F32, 2, (int64_t[]){n, 2}, z);
    t_results_npy(r, mem, r->model, SP_GROUPS_Z, FTH_I64, 1, &n, group);
    t_results_npy(r, mem, r->model, SP_LU, FTH_F32, 3, (int64_t[]){L, n, n}, lu);
    free(z);
    free(lu);
    free(group);
}

static inline void t_results_video(const t_results *r, fth_mem *mem)
{
    const int64_t n = r->cells * r->factors;
    if (r->frames == 0) return;
    float *v = malloc((size_t)(r->frames * n) * sizeof *v);
    int64_t *at = malloc((size_t)r->frames * sizeof *at);
    for (int64_t f = 0; f < r->frames; f++) {
        at[f] = 20 * f;
        for (int64_t i = 0; i < n; i++)
            v[f * n + i] = (float)(f + 1) * t_results_factor(r, i / r->factors, i % r->factors);
    }
    t_results_npy(r, mem, r->model, SP_FRAMES, FTH_F32, 3,
                  (int64_t[]){r->frames, r->cells, r->factors}, v);
    t_results_npy(r, mem, r->model, SP_FRAME_ITERS, FTH_I64, 1, &r->frames, at);
    free(v);
    free(at);
}

static inline void t_results_orders(const t_results *r, fth_mem *mem, const char *name,
                                    int64_t rows)
{
    int64_t *v = malloc((size_t)(rows * r->genes) * sizeof *v);
    for (int64_t i = 0; i < rows * r->genes; i++) v[i] = (i % r->genes + i / r->genes) % r->genes;
    t_results_npy(r, mem, r->model, name, FTH_I64, 2, (int64_t[]){rows, r->genes}, v);
    free(v);
}

/* Every file of preprocess and analyze that figures and export read. */
static inline void t_results_make(const t_results *r)
{
    fth_mem *mem = t_mem(1 << 28);
    char path[FTH_PATH], name[64];
    mkdir(r->dir, 0777);
    t_results_path(r, path, "", SP_PREPROCESSED);
    mkdir(path, 0777);
    t_results_path(r, path, "", r->model);
    mkdir(path, 0777);
    t_results_path(r, path, r->model, SP_GROUPWISE);
    mkdir(path, 0777);
    t_results_preprocessed(r, mem);
    t_results_factors(r, mem, SP_FACTORS, 1);
    t_results_factors(r, mem, SP_SCALES, 0.2f);
    t_results_pattern(r, mem, SP_LOADINGS, r->genes, r->factors, 0);
    for (int64_t g = 0; g < r->groups; g++) {
        snprintf(name, sizeof name, "loadings_group_%lld.npy", (long long)g);
        t_results_pattern(r, mem, name, r->genes, r->factors, g + 1);
        snprintf(name, sizeof name, SP_GROUPWISE "/group_%lld.npy", (long long)g);
        t_results_factors(r, mem, name, 0.5f + 0.25f * (float)g);
    }
    t_results_training(r, mem);
    t_results_video(r, mem);
    t_results_orders(r, mem, SP_PCA, r->factors);
    t_results_orders(r, mem, SP_PCA_GROUP, r->groups);
    t_results_path(r, path, r->model, SP_METRICS);
    static const char metrics[] =
        "{\"reconstruction_error\": 0.25, \"poisson_deviance\": {\"mean\": NaN, \"total\": 12},\n"
        " \"names\": [\"a\", \"b\"], \"values\": [1, 2.5, null], \"of/two\": true, \"nothing\": "
        "null,\n"
        " \"timestamp\": \"2026-01-01T00:00:00\", \"mixed\": [1, \"a\"], \"empty\": []}\n";
    t_file_write(path, metrics, sizeof metrics - 1);
    fth_lines moran;
    fth_lines_begin(&moran, mem);
    fth_lines_add(&moran, "factor_idx,moran_i\n");
    for (int64_t l = 0; l < r->factors; l++)
        fth_lines_add(&moran, "%lld,0.%lld\n", (long long)l, 987 - 100 * (long long)l);
    t_results_path(r, path, r->model, SP_MORAN);
    OK(fth_lines_save(&moran, path, NULL));
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- a stage without a job around it ---- */

typedef struct t_stage {
    fth_context *ctx;
    fth_mem *mem; /* of the config */
    fth_config *cfg;
    char model_dir[FTH_PATH];
    const char *flags[3];
    fth_stage_call call;
} t_stage;

/* `kind` is a line of model keys: "spatial: true, prior: SVGP". */
static inline void t_stage_open(t_stage *s, const t_results *r, const char *kind,
                                const fth_mem_options *mem)
{
    char text[2000];
    fth_err err = {0};
    *s = (t_stage){.mem = t_mem(1 << 24)};
    const int n =
        snprintf(text, sizeof text,
                 "name: a test\ndataset: arrays\noutput_dir: %s\npreprocessing: {path: %s}\n"
                 "model: {n_components: %lld, num_inducing: %lld, K: 5, %s}\n"
                 "training: {max_iter: 40}\nfigures: {dpi: %d, %s}\n",
                 r->dir, r->dir, (long long)r->factors, (long long)r->points, kind,
                 r->dpi ? r->dpi : 75, r->figures ? r->figures : "which: main");
    OK(fth_config_create(&s->cfg, s->mem, NULL));
    OK(fth_config_parse(s->cfg, "test", text, (size_t)n, NULL));
    OKE(fth_config_check(s->cfg, &sp_schema, NULL, &err), &err);
    fth_options opt;
    fth_options_default(&opt);
    opt.mem = *mem;
    opt.threads = 1;
    OK(fth_context_create(&s->ctx, &opt, NULL));
    snprintf(s->model_dir, sizeof s->model_dir, "%s/%s", r->dir, r->model);
    s->call = (fth_stage_call){.config = s->cfg,
                               .model = r->model,
                               .output_dir = r->dir,
                               .model_dir = s->model_dir,
                               .context = s->ctx,
                               .flags = s->flags,
                               .job = "test",
                               .attempt = ""};
}

static inline void t_stage_close(t_stage *s)
{
    OK(fth_context_destroy(s->ctx, NULL));
    OK(fth_config_destroy(s->cfg, NULL));
    OK(fth_mem_destroy(s->mem, NULL));
}

#endif
