/* info.c - `fathom spatial info`: detects what a path is, and describes folders and models. */
#include "info.h"

#include "../data/data.h"
#include "vendor.h"

#include <fathom/zarr.h>

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool has(const char *dir, const char *name)
{
    char path[FTH_PATH];
    return fth_path_join(path, dir, name, NULL) == FTH_OK && fth_path_exists(path);
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* ---- a preprocessed folder ---- */

static void print_groups(const sp_data *d, const sp_told *t)
{
    enum { SHOWN = 40 };
    const int32_t *group = fth_tensor_data(d->group);
    for (int64_t g = 0; g < d->size.groups && g < SHOWN; g++) {
        int64_t n = 0;
        for (int64_t i = 0; i < d->size.cells; i++) n += group[i] == g;
        fprintf(t->out, "  %10lld  %s\n", (long long)n, fth_texts_get(d->group_names, g));
    }
    for (int64_t g = 0; t->w && g < d->size.groups; g++) {
        int64_t n = 0;
        for (int64_t i = 0; i < d->size.cells; i++) n += group[i] == g;
        fth_json_open(t->w, NULL, '{');
        fth_json_text(t->w, "name", fth_texts_get(d->group_names, g));
        fth_json_int(t->w, "cells", n);
        fth_json_close(t->w);
    }
    if (d->size.groups > SHOWN)
        fprintf(t->out, "  and %lld more\n", (long long)(d->size.groups - SHOWN));
}

enum { SHOWN_SECTIONS = 30 };

fth_status sp_info_preprocessed(fth_mem *mem, const char *dir, const sp_told *t, fth_err *err)
{
    sp_data d;
    char bytes[24];
    FTH_TRY(sp_data_open(&d, mem, dir, err));
    const double all = (double)d.size.cells * (double)d.size.genes;
    fprintf(t->out, "%s: a preprocessed dataset\n", dir);
    fprintf(t->out, "cells    %lld%s\n", (long long)d.size.cells,
            d.cell_names ? "" : ", without names");
    fprintf(t->out, "genes    %lld\n", (long long)d.size.genes);
    fprintf(t->out, "counts   %lld stored, %.3g %% of all, %s; at most %lld in one cell\n",
            (long long)d.size.entries, 100 * (double)d.size.entries / all,
            fth_mem_format_size((uint64_t)d.size.entries * 8, bytes, sizeof bytes),
            (long long)d.size.most_entries);
    fprintf(t->out, "extent   %.6g\n", d.extent);
    if (d.sections.n > 0) fprintf(t->out, "sections %lld\n", (long long)d.sections.n);
    for (int64_t i = 0; i < d.sections.n && i < SHOWN_SECTIONS; i++)
        fprintf(t->out, "  %10lld  %s\n", (long long)d.sections.of[i].cells,
                sp_sections_name(&d.sections, i));
    fprintf(t->out, "groups   %lld\n", (long long)d.size.groups);
    if (t->w) {
        fth_json_open(t->w, "dataset", '{');
        fth_json_text(t->w, "folder", dir);
        fth_json_int(t->w, "cells", d.size.cells);
        fth_json_int(t->w, "genes", d.size.genes);
        fth_json_int(t->w, "counts", d.size.entries);
        fth_json_int(t->w, "most_counts_of_a_cell", d.size.most_entries);
        fth_json_bool(t->w, "cell_names", d.cell_names != NULL);
        fth_json_real(t->w, "extent", d.extent);
        if (d.sections.n > 0) sp_sections_put_names(t->w, "sections", &d.sections);
        fth_json_open(t->w, "groups", '[');
    }
    print_groups(&d, t);
    if (t->w) {
        fth_json_close(t->w);
        fth_json_close(t->w);
    }
    sp_data_close(&d);
    return FTH_OK;
}

/* ---- a model's file ---- */

static fth_status print_tensor(const fth_safetensors *file, fth_safetensors *open, int64_t i,
                               const sp_told *t, uint64_t *total, fth_err *err)
{
    fth_source s;
    char key[128], shape[128] = "", size[24];
    const char *name = fth_safetensors_name(file, i);
    size_t used = 0;
    FTH_TRY(fth_safetensors_source(open, name, &s, err));
    uint64_t bytes = (uint64_t)fth_dtype_size(s.dtype);
    for (int a = 0; a < s.n_axes; a++) {
        bytes *= (uint64_t)s.size[a];
        const int n = snprintf(shape + used, sizeof shape - used, "%s%lld", a ? " x " : "",
                               (long long)s.size[a]);
        used += n > 0 && used + (size_t)n < sizeof shape ? (size_t)n : 0;
    }
    snprintf(key, sizeof key, "axes.%.100s", name);
    const char *axes = fth_safetensors_meta(file, key);
    fprintf(t->out, "  %-16s %-5s %-24s %12s  %s\n", name, fth_dtype_name(s.dtype), shape,
            fth_mem_format_size(bytes, size, sizeof size), axes ? axes : "");
    if (t->w) {
        fth_json_open(t->w, NULL, '{');
        fth_json_text(t->w, "name", name);
        fth_json_text(t->w, "dtype", fth_dtype_name(s.dtype));
        fth_json_open(t->w, "size", '[');
        for (int a = 0; a < s.n_axes; a++) fth_json_int(t->w, NULL, s.size[a]);
        fth_json_close(t->w);
        fth_json_u64(t->w, "bytes", bytes);
        if (axes) fth_json_text(t->w, "axes", axes);
        fth_json_close(t->w);
    }
    *total += bytes;
    fth_source_close(&s);
    return FTH_OK;
}

fth_status sp_info_model(fth_mem *mem, const char *path, const sp_told *t, fth_err *err)
{
    fth_safetensors *file = NULL;
    uint64_t total = 0;
    char size[24];
    FTH_TRY(fth_safetensors_open(&file, mem, path, err));
    fprintf(t->out, "%s: a model\nsettings\n", path);
    if (t->w) fth_json_open(t->w, "settings", '{');
    for (int64_t i = 0; i < fth_safetensors_meta_count(file); i++) {
        const char *key = NULL, *value = fth_safetensors_meta_at(file, i, &key);
        if (strncmp(key, "axes.", 5) == 0 || strncmp(key, "xxh64.", 6) == 0) continue;
        fprintf(t->out, "  %-24s %.100s%s\n", key, value, strlen(value) > 100 ? " ..." : "");
        if (t->w) fth_json_text(t->w, key, value);
    }
    if (t->w) {
        fth_json_close(t->w);
        fth_json_open(t->w, "tensors", '[');
    }
    fprintf(t->out, "tensors\n");
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < fth_safetensors_count(file); i++)
        s = print_tensor(file, file, i, t, &total, err);
    fprintf(t->out, "  all together %s\n", fth_mem_format_size(total, size, sizeof size));
    if (t->w) {
        fth_json_close(t->w);
        fth_json_u64(t->w, "tensor_bytes", total);
    }
    fth_safetensors_close(file);
    return s;
}

/* ---- results ---- */

static fth_status print_json(fth_mem *mem, const char *dir, const char *name,
                             void (*print)(const fth_json_value *v, const sp_told *t),
                             const sp_told *t, fth_err *err)
{
    char path[FTH_PATH];
    fth_json *doc = NULL;
    if (!has(dir, name)) return FTH_OK;
    FTH_TRY(fth_path_join(path, dir, name, err));
    FTH_TRY(fth_json_load(&doc, mem, path, err));
    print(fth_json_root(doc), t);
    char key[64];
    snprintf(key, sizeof key, "%.*s", (int)strcspn(name, "."), name);
    if (t->w) fth_json_copy(t->w, key, fth_json_root(doc)); /* training, metrics */
    fth_json_destroy(doc);
    return FTH_OK;
}

static void print_training(const fth_json_value *v, const sp_told *t)
{
    fprintf(t->out, "  trained   %lld iterations, %s, ELBO %.8g\n",
            (long long)fth_json_get_int(v, "n_iterations", 0),
            fth_json_get_bool(v, "converged", false) ? "converged" : "not converged",
            fth_json_get_real(v, "elbo", (double)NAN));
}

bool sp_info_training(fth_mem *mem, const char *model_dir, fth_stage_result *out)
{
    char path[PATH_MAX];
    if (!realpath(model_dir, path)) return false;
    char *slash = strrchr(path, '/');
    *slash = '\0';
    return fth_stage_last(mem, *path ? path : "/", "train", slash + 1, out);
}

static void print_metrics(const fth_json_value *v, const sp_told *t)
{
    const fth_json_value *moran = fth_json_get(v, "moran_i"), *hold = fth_json_get(v, "holdout");
    fprintf(t->out, "  analyzed  %lld factors, reconstruction error %.4g, mean deviance %.4g\n",
            (long long)fth_json_get_int(v, "n_factors", 0),
            fth_json_get_real(v, "reconstruction_error", (double)NAN),
            fth_json_get_real(fth_json_get(v, "poisson_deviance"), "mean", (double)NAN));
    fprintf(t->out, "  Moran's I %.3f to %.3f, mean %.3f\n",
            fth_json_get_real(moran, "min", (double)NAN),
            fth_json_get_real(moran, "max", (double)NAN),
            fth_json_get_real(moran, "mean", (double)NAN));
    if (hold)
        fprintf(t->out, "  held out  mean deviance %.4g\n",
                fth_json_get_real(hold, "mean", (double)NAN));
}

static fth_status print_model(fth_mem *mem, const char *dir, const char *name, const sp_told *t,
                              fth_err *err)
{
    fprintf(t->out, "%s\n", name);
    fth_stage_result last;
    if (t->w) {
        fth_json_open(t->w, NULL, '{');
        fth_json_text(t->w, "name", name);
        fth_json_text(t->w, "folder", dir);
    }
    FTH_TRY(print_json(mem, dir, SP_TRAINING, print_training, t, err));
    if (sp_info_training(mem, dir, &last)) {
        fprintf(t->out, "            in %.4g s on %s\n", last.seconds, last.device);
        if (t->w) fth_json_seconds(t->w, "training_seconds", last.seconds);
        if (t->w) fth_json_text(t->w, "device", last.device);
    }
    FTH_TRY(print_json(mem, dir, SP_METRICS, print_metrics, t, err));
    if (has(dir, SP_FIGURES)) fprintf(t->out, "  drawn     %s/" SP_FIGURES "\n", dir);
    if (t->w) {
        fth_json_bool(t->w, "drawn", has(dir, SP_FIGURES));
        fth_json_close(t->w);
    }
    return FTH_OK;
}

static fth_status print_models(fth_mem *mem, const char *dir, const sp_told *t, int *n,
                               fth_err *err)
{
    char path[FTH_PATH];
    for (int i = 0; i < SP_KIND_COUNT; i++) {
        FTH_TRY(fth_path_join(path, dir, sp_kinds[i].name, err));
        if (!has(path, SP_CHECKPOINT) && !has(path, SP_FACTORS)) continue;
        FTH_TRY(print_model(mem, path, sp_kinds[i].name, t, err));
        ++*n;
    }
    return FTH_OK;
}

fth_status sp_info_results(fth_mem *mem, const char *dir, const sp_told *t, fth_err *err)
{
    char path[FTH_PATH];
    int n = 0;
    if (has(dir, SP_CHECKPOINT) || has(dir, SP_FACTORS)) {
        if (t->w) fth_json_open(t->w, "models", '[');
        FTH_TRY(print_model(mem, dir, dir, t, err));
        if (t->w) fth_json_close(t->w);
        return FTH_OK;
    }
    if (has(dir, SP_PREPROCESSED)) {
        FTH_TRY(fth_path_join(path, dir, SP_PREPROCESSED, err));
        FTH_TRY(sp_info_preprocessed(mem, path, t, err));
        n++;
    }
    if (t->w) fth_json_open(t->w, "models", '[');
    FTH_TRY(print_models(mem, dir, t, &n, err));
    if (t->w) fth_json_close(t->w);
    if (n > 0) return FTH_OK;
    const fth_status s = FTH_FAIL(err, FTH_E_FILE_OPEN,
                                  "%s: there is no dataset, model or result in this folder", dir);
    fth_err_hint(err,
                 "give an .h5ad or .safetensors file, a folder with X.npy, an output folder of "
                 "10x, MERSCOPE or CosMx, or an output_dir");
    return s;
}

/* ---- the verb ---- */

static fth_status describe(fth_mem *mem, const char *path, fth_answer *a, fth_err *err)
{
    const fth_path_kind kind = fth_path_kind_of(path);
    if (kind == FTH_PATH_ABSENT)
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: there is no such file or folder", path);
    const bool store = fth_zarr_kind_of(path) == FTH_ZARR_GROUP,
               folder = kind == FTH_PATH_FOLDER && !store, data = folder && has(path, SP_X),
               model = ends_with(path, ".safetensors");
    sp_tenx_files files = {0};
    const bool others = folder && !data && !sp_tenx_files_guess(&files, path);
    if (others) FTH_TRY(sp_vendor_files_guess(&files, mem, path, err));
    const bool vendor = others && files.kind;
    const bool tenx = folder && !data && files.kind;
    fth_answer_file(a, FTH_FILE_INPUT, path, -1, "%s",
                    data     ? "a preprocessed dataset"
                    : vendor ? sp_vendor_title(files.kind)
                    : tenx   ? sp_tenx_files_title(files.kind)
                    : folder ? "a folder of results"
                    : model  ? "a model"
                             : "counts");
    const sp_told t = {.out = a->out, .w = a->json ? fth_answer_facts(a) : NULL};
    if (tenx) return sp_info_folder(mem, &files, path, &t, err);
    if (folder)
        return data ? sp_info_preprocessed(mem, path, &t, err)
                    : sp_info_results(mem, path, &t, err);
    return model ? sp_info_model(mem, path, &t, err) : sp_info_h5ad(mem, path, &t, err);
}

static fth_status run(fth_context *ctx, int n_args, char *const *arg,
                      const char *(*value)(void *user, const char *flag), void *user, FILE *out,
                      fth_err *err)
{
    fth_answer a;
    (void)n_args;
    FTH_TRY(fth_answer_begin(&a, ctx, value, user, out, err));
    return fth_answer_end(&a, describe(fth_context_mem(ctx), arg[0], &a, err), err);
}

const fth_verb sp_verb_info = {
    .name = "info",
    .args = "PATH",
    .brief = "what an h5ad or 10x file, a .zarr folder, an output folder of a vendor, a dataset, a "
             "model or "
             "a folder of results holds",
    .doc =
        "Of an h5ad file, or of an AnnData or SpatialData .zarr folder: shape and layout of the "
        "counts, layers, obsm, columns of obs with "
        "their categories, and a config that would read it; the same of a 10x .h5 file and of an "
        "output folder of Space Ranger (Visium, Visium HD), the Xenium Analyzer, MERSCOPE or "
        "CosMx. Of a "
        "preprocessed folder: cells, "
        "genes, groups. Of a model: its settings and tensors. Of a folder of results: what was "
        "trained, analyzed and drawn.",
    .min_args = 1,
    .max_args = 1,
    .heeds = "json", /* it only reads: there is nothing to plan */
    .run = run};
