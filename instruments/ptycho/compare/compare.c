/* compare.c - see compare.h. */
#include "compare.h"

#include "../evaluate/draw.h"
#include "../metrics/parts.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define PLOT_PNG "comparison_plot.png"
#define METRICS_CSV "comparison_metrics.csv"
#define RAW_NPZ "reconstructions.npz"
#define ALIGNED_NPZ "reconstructions_aligned.npz"
#define TRUTH_NAME "ground_truth"

typedef struct work {
    const pt_comparison *c;
    fth_mem *mem;
    pt_found found[PT_MOST_COMPARED];
    pt_image aligned[PT_MOST_COMPARED]; /* later cropped to one size */
    pt_image truth;                     /* the truth that the first was compared with */
} work;

/* ---- names ---- */

static bool is_name(const char *text, size_t n)
{
    if (n == 0 || n >= sizeof((pt_candidate *)0)->name) return false;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr("_-.+", text[i])) return false;
    return text[0] != '.';
}

fth_status pt_candidate_parse(pt_candidate *out, const char *word, fth_err *err)
{
    const char *equals = strchr(word, '=');
    *out = (pt_candidate){.path = equals ? equals + 1 : word};
    if (equals) {
        if (!is_name(word, (size_t)(equals - word)) || !*out->path)
            return FTH_FAIL(err, FTH_E_COMMAND,
                            "'%.200s' is not NAME=FILE with a name of letters, digits and _-.+",
                            word);
        memcpy(out->name, word, (size_t)(equals - word));
        return FTH_OK;
    }
    /* DIR/NAME/reconstruction.npz is called NAME, any other file by its stem */
    const char *file = fth_path_name(word), *from = file, *dot = strrchr(file, '.');
    size_t n = dot && dot > file ? (size_t)(dot - file) : strlen(file);
    if (n == strlen("reconstruction") && strncmp(file, "reconstruction", n) == 0 &&
        file > word + 1) {
        const char *end = file - 1;
        for (from = end; from > word && from[-1] != '/';) from--;
        n = (size_t)(end - from);
    }
    if (!is_name(from, n))
        return FTH_FAIL(err, FTH_E_COMMAND, "no name can be derived from '%.200s': write NAME=FILE",
                        word);
    memcpy(out->name, from, n);
    return FTH_OK;
}

static fth_status check_names(const pt_comparison *c, fth_err *err)
{
    for (int i = 0; i < c->n; i++)
        for (int j = 0; j <= i; j++) {
            const char *other = j == i ? TRUTH_NAME : c->model[j].name;
            if (strcmp(c->model[i].name, other) == 0)
                return FTH_FAIL(err, FTH_E_COMMAND,
                                "two objects are called '%s': give them different names, NAME=FILE",
                                other);
        }
    return FTH_OK;
}

/* ---- arrays ---- */

typedef struct entry {
    char name[64];
    const pt_image *image;
} entry;

/* amplitude, phase and the complex values of each image. */
static fth_status save_npz(fth_mem *mem, const char *path, const entry *e, int n, fth_err *err)
{
    static const char *const part[] = {"complex", "amplitude", "phase"};
    enum { PARTS = 3, MOST = (PT_MOST_COMPARED + 1) * PARTS };
    fth_file_item item[MOST] = {0};
    char name[MOST][80];
    fth_npz_writer *w = NULL;
    for (int i = 0; i < n * PARTS; i++) {
        const pt_image *v = e[i / PARTS].image;
        snprintf(name[i], sizeof name[i], "%s_%s", e[i / PARTS].name, part[i % PARTS]);
        item[i] = (fth_file_item){.name = name[i],
                                  .dtype = i % PARTS ? FTH_F32 : FTH_C64,
                                  .n_axes = 2,
                                  .size = {v->rows, v->cols}};
    }
    FTH_TRY(fth_npz_create(&w, mem, path, item, n * PARTS, err));
    fth_status s = FTH_OK;
    for (int i = 0; s == FTH_OK && i < n * PARTS; i++) {
        const pt_image *v = e[i / PARTS].image;
        fth_sink sink;
        void *row = NULL;
        s = fth_npz_sink(w, name[i], &sink, err);
        if (s == FTH_OK && i % PARTS == 0) s = fth_sink_put(&sink, v->at, err);
        if (s != FTH_OK || i % PARTS == 0) continue;
        s = fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)(v->rows * v->cols) * sizeof(float),
                         "amplitude or phase", &row, err);
        float *to = row;
        for (int64_t k = 0; s == FTH_OK && k < v->rows * v->cols; k++)
            to[k] = i % PARTS == 1 ? hypotf(v->at[k].re, v->at[k].im)
                                   : atan2f(v->at[k].im, v->at[k].re);
        if (s == FTH_OK) s = fth_sink_put(&sink, row, err);
        (void)fth_mem_release(mem, row, NULL);
    }
    if (s == FTH_OK) return fth_npz_commit(w, err);
    fth_npz_abandon(w);
    return s;
}

/* Objects as stored in their files. */
static fth_status save_raw(const work *w, fth_err *err)
{
    const pt_comparison *c = w->c;
    pt_recon recon[PT_MOST_COMPARED + 1] = {0};
    entry e[PT_MOST_COMPARED + 1];
    char path[FTH_PATH];
    fth_status s = fth_path_join(path, c->folder, RAW_NPZ, err);
    for (int i = 0; s == FTH_OK && i <= c->n; i++) {
        s = pt_recon_open(&recon[i], w->mem, i < c->n ? c->model[i].path : c->truth, err);
        snprintf(e[i].name, sizeof e[i].name, "%s", i < c->n ? c->model[i].name : TRUTH_NAME);
        e[i].image = &recon[i].object;
    }
    if (s == FTH_OK) s = save_npz(w->mem, path, e, c->n + 1, err);
    for (int i = 0; i <= c->n; i++) pt_recon_close(&recon[i]);
    return s;
}

/* ---- one size for all ---- */

static fth_status cut(pt_image *image, fth_mem *mem, int64_t rows, int64_t cols, fth_err *err)
{
    pt_image small;
    if (image->rows == rows && image->cols == cols) return FTH_OK;
    FTH_TRY(pt_image_crop(&small, mem, image, (image->rows - rows) / 2, (image->cols - cols) / 2,
                          rows, cols, err));
    pt_image_free(image);
    *image = small;
    return FTH_OK;
}

static fth_status cut_all(work *w, fth_err *err)
{
    int64_t rows = w->truth.rows, cols = w->truth.cols;
    for (int i = 0; i < w->c->n; i++) {
        rows = w->aligned[i].rows < rows ? w->aligned[i].rows : rows;
        cols = w->aligned[i].cols < cols ? w->aligned[i].cols : cols;
    }
    FTH_TRY(cut(&w->truth, w->mem, rows, cols, err));
    for (int i = 0; i < w->c->n; i++) FTH_TRY(cut(&w->aligned[i], w->mem, rows, cols, err));
    return FTH_OK;
}

/* ---- all of it ---- */

static fth_status evaluate_all(work *w, fth_err *err)
{
    const pt_comparison *c = w->c;
    for (int i = 0; i < c->n; i++) {
        pt_image compared = {0};
        const pt_evaluation e = {
            .ctx = c->ctx, .config = c->config, .recon = c->model[i].path, .truth = c->truth};
        FTH_TRY_CTX(pt_evaluate_files(&e, &w->found[i], &w->aligned[i], &compared, err), err,
                    "comparing %s", c->model[i].name);
        if (i == 0)
            w->truth = compared;
        else
            pt_image_free(&compared);
        if (!w->found[i].has_metrics)
            return FTH_FAIL(err, FTH_E_FILE_KEY, "%s has no object to compare with", c->truth);
    }
    return FTH_OK;
}

static fth_status save_tables(const work *w, pt_verdict *v, fth_err *err)
{
    const pt_comparison *c = w->c;
    char path[FTH_PATH], name[80];
    FTH_TRY(fth_path_join(path, c->folder, METRICS_CSV, err));
    FTH_TRY(pt_verdicts_save_csv(v, c->n, w->mem, path, err));
    for (int i = 0; i < c->n; i++) {
        snprintf(name, sizeof name, "%s_frc_curves.csv", c->model[i].name);
        FTH_TRY(fth_path_join(path, c->folder, name, err));
        FTH_TRY(pt_verdict_save_curves(&v[i], w->mem, path, err));
    }
    FTH_TRY(fth_path_join(path, c->folder, PT_FRC_PNG, err));
    return pt_verdicts_draw_frc(v, c->n, w->mem, path, NULL, err);
}

static fth_status save_images(const work *w, fth_err *err)
{
    const pt_comparison *c = w->c;
    pt_shown shown[PT_MOST_COMPARED + 1];
    entry e[PT_MOST_COMPARED + 1];
    char path[FTH_PATH];
    for (int i = 0; i <= c->n; i++) {
        const char *name = i < c->n ? c->model[i].name : TRUTH_NAME;
        e[i].image = i < c->n ? &w->aligned[i] : &w->truth;
        snprintf(e[i].name, sizeof e[i].name, "%s", name);
        shown[i] = (pt_shown){i < c->n ? name : "truth", e[i].image};
    }
    FTH_TRY(fth_path_join(path, c->folder, ALIGNED_NPZ, err));
    FTH_TRY(save_npz(w->mem, path, e, c->n + 1, err));
    FTH_TRY(fth_path_join(path, c->folder, PLOT_PNG, err));
    return pt_draw_side_by_side(w->mem, shown, c->n + 1, w->found[0].align, false, path, NULL, err);
}

static void print_table(const pt_comparison *c, const pt_verdict *v)
{
    fprintf(c->out, "%-12s", "metric");
    for (int i = 0; i < c->n; i++) fprintf(c->out, "  %24.24s", c->model[i].name);
    fprintf(c->out, "\n");
    for (int m = 0; m < PT_METRICS; m++) {
        const int d = pt_metric_decimals((pt_metric)m);
        fprintf(c->out, "%-12s", pt_metric_name((pt_metric)m));
        for (int i = 0; i < c->n; i++)
            fprintf(c->out, "  %11.*f  %11.*f", d, v[i].metrics->value[m][0], d,
                    v[i].metrics->value[m][1]);
        fprintf(c->out, "\n");
    }
}

fth_status pt_compare(const pt_comparison *c, fth_err *err)
{
    work w = {.c = c, .mem = fth_context_mem(c->ctx)};
    pt_verdict v[PT_MOST_COMPARED];
    FTH_TRY(check_names(c, err));
    fth_status s = evaluate_all(&w, err);
    for (int i = 0; i < c->n; i++) {
        v[i] = pt_found_verdict(&w.found[i]);
        v[i].name = c->model[i].name;
    }
    if (s == FTH_OK) s = cut_all(&w, err);
    if (s == FTH_OK) s = fth_folder_make_all(w.mem, c->folder, err);
    if (s == FTH_OK) s = save_tables(&w, v, err);
    if (s == FTH_OK) s = save_images(&w, err);
    if (s == FTH_OK) s = save_raw(&w, err);
    if (s == FTH_OK && c->out) print_table(c, v);
    for (int i = 0; s == FTH_OK && c->facts && i < c->n; i++) {
        fth_json_open(c->facts, c->model[i].name, '{');
        pt_verdict_json(&v[i], c->facts);
        fth_json_close(c->facts);
    }
    for (int i = 0; i < c->n; i++) {
        pt_found_clear(&w.found[i]);
        pt_image_free(&w.aligned[i]);
    }
    pt_image_free(&w.truth);
    return s;
}
