/* multianalyze_write.c - a comparison as JSON, as maps side by side, as heat maps of distances. */
#include "multianalyze.h"

#include <math.h>

/* "DIR/<before><A>_vs_<B>...<after>" of models first to end - 1, skipping none. */
static fth_status name_file(char path[FTH_PATH], const char *dir, const char *before,
                            const char *const *model, int n, const char *after, fth_err *err)
{
    char name[FTH_PATH];
    size_t used = (size_t)snprintf(name, sizeof name, "%s", before);
    for (int i = 0; i < n && used < sizeof name; i++)
        used +=
            (size_t)snprintf(name + used, sizeof name - used, "%s%s", i ? "_vs_" : "", model[i]);
    if (used < sizeof name) used += (size_t)snprintf(name + used, sizeof name - used, "%s", after);
    if (used >= sizeof name)
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "the names of the models are too long for a file");
    return fth_path_join(path, dir, name, err);
}

/* ---- JSON ---- */

static void put_two(fth_json_writer *w, const sp_comparison *c, int i, int j)
{
    const double *d = fth_tensor_data(c->distance[i][j]);
    const int64_t a = fth_tensor_size(c->distance[i][j], 0);
    const int64_t b = fth_tensor_size(c->distance[i][j], 1);
    fth_json_open(w, NULL, '{');
    fth_json_text(w, "a", c->model[i]);
    fth_json_text(w, "b", c->model[j]);
    fth_json_open(w, "distances", '[');
    for (int64_t k = 0; k < a; k++) {
        fth_json_open(w, NULL, '[');
        for (int64_t l = 0; l < b; l++) fth_json_real(w, NULL, d[k * b + l]);
        fth_json_close(w);
    }
    fth_json_close(w);
    fth_json_open(w, "matches", '[');
    for (int64_t p = 0; p < c->n_pairs[i][j]; p++) {
        fth_json_open(w, NULL, '{');
        fth_json_int(w, "a", c->pair[i][j][p].a);
        fth_json_int(w, "b", c->pair[i][j][p].b);
        fth_json_real(w, "distance", c->pair[i][j][p].distance);
        fth_json_close(w);
    }
    fth_json_close(w);
    fth_json_close(w);
}

void sp_comparison_put(const sp_comparison *c, fth_json_writer *w)
{
    fth_json_open(w, "models", '[');
    for (int i = 0; i < c->n; i++) fth_json_text(w, NULL, c->model[i]);
    fth_json_close(w);
    fth_json_text(w, "matched_against", c->model[c->against]);
    fth_json_text(w, "assignment", c->best ? "hungarian" : "greedy");
    fth_json_open(w, "comparisons", '[');
    for (int i = 0; i < c->n; i++)
        for (int j = i + 1; j < c->n; j++) put_two(w, c, i, j);
    fth_json_close(w);
    fth_json_open(w, "shown", '[');
    for (int64_t r = 0; r < c->rows; r++) {
        fth_json_open(w, NULL, '{');
        fth_json_open(w, "factors", '[');
        for (int j = 0; j < c->n; j++) fth_json_int(w, NULL, c->shown[r * c->n + j]);
        fth_json_close(w);
        fth_json_open(w, "distances", '[');
        for (int j = 0; j < c->n; j++) fth_json_real(w, NULL, c->away[r * c->n + j]);
        fth_json_close(w);
        fth_json_close(w);
    }
    fth_json_close(w);
}

static fth_status write_json(const sp_comparison *c, const char *path, fth_err *err)
{
    fth_json_writer w;
    fth_json_begin(&w, c->mem, true);
    fth_json_open(&w, NULL, '{');
    sp_comparison_put(c, &w);
    fth_json_close(&w);
    return fth_json_save(&w, path, err);
}

/* ---- maps ---- */

static void add_map(fth_panel *p, const sp_comparison *c, int64_t row, int j, double most)
{
    const int64_t l = c->shown[row * c->n + j];
    char title[160];
    if (j == 0)
        snprintf(title, sizeof title, "%.100s\nFactor %lld", c->model[j], (long long)l + 1);
    else
        snprintf(title, sizeof title, "%.100s\nFactor %lld, d=%.3f", c->model[j], (long long)l + 1,
                 c->away[row * c->n + j]);
    fth_panel_set(p, &(fth_panel_options){.title = title,
                                          .background = fth_rgb(128, 128, 128),
                                          .aspect = FTH_ASPECT_EQUAL,
                                          .colour_bar = ""});
    fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.no_ticks = true});
    fth_panel_axis(p, FTH_AXIS_Y,
                   &(fth_axis_options){.no_ticks = true, .direction = FTH_GROW_DOWN});
    fth_panel_points(
        p, fth_column_tensor(c->xy, 0), fth_column_tensor(c->xy, 1),
        &(fth_points){.area = 100 / sqrt((double)fth_tensor_size(c->xy, 0)),
                      .alpha = 0.8,
                      .values = fth_column_tensor(c->F[j], l),
                      .colours = {.map = FTH_MAP_TURBO, .low = 0, .high = most > 0 ? most : 1}});
}

static fth_status draw_maps(const sp_comparison *c, const char *path, fth_err *err)
{
    fth_figure *fig = NULL;
    const fth_figure_options opt = {.panels = c->rows * c->n, .columns = c->n, .dpi = 200};
    FTH_TRY(fth_figure_create(&fig, c->mem, &opt, err));
    fth_status s = FTH_OK;
    for (int64_t k = 0; s == FTH_OK && k < c->rows * c->n; k++) {
        const int j = (int)(k % c->n);
        const fth_column of = fth_column_tensor(c->F[j], c->shown[k]);
        double most = 1;
        s = fth_column_percentile(c->mem, &of, 1, 99, &most, err);
        if (s == FTH_OK) add_map(fth_figure_panel(fig, k), c, k / c->n, j, most);
    }
    if (s == FTH_OK) s = fth_figure_save(fig, path, err);
    fth_figure_destroy(fig);
    return s;
}

/* ---- distances ---- */

/* "1", "2", ... as names of rows and columns. */
typedef struct numbers {
    char text[2][128][8];
    const char *name[2][128];
} numbers;

static void count_up(numbers *n, int side, int64_t most)
{
    for (int64_t i = 0; i < most && i < 128; i++) {
        snprintf(n->text[side][i], sizeof n->text[side][i], "%d", (int)(i % 10000) + 1);
        n->name[side][i] = n->text[side][i];
    }
}

static fth_status draw_distances(const sp_comparison *c, int i, int j, const char *path,
                                 fth_err *err)
{
    fth_tensor *d = c->distance[i][j];
    const int64_t a = fth_tensor_size(d, 0), b = fth_tensor_size(d, 1);
    char title[300];
    fth_figure *fig = NULL;
    void *block = NULL;
    FTH_TRY(fth_mem_take(c->mem, FTH_MEM_META, sizeof(numbers), "names", &block, err));
    numbers *names = block;
    count_up(names, 0, a);
    count_up(names, 1, b);
    const bool few = a <= 24 && b <= 24;
    const fth_figure_options opt = {.width = 2.2 + 0.42 * (double)(few ? b : 24),
                                    .height = 1.6 + 0.34 * (double)(few ? a : 24),
                                    .dpi = 150};
    fth_status s = fth_figure_create(&fig, c->mem, &opt, err);
    if (s == FTH_OK) {
        fth_panel *p = fth_figure_panel(fig, 0);
        snprintf(title, sizeof title, "distance of factors\n%.100s against %.100s", c->model[i],
                 c->model[j]);
        fth_panel_set(p, &(fth_panel_options){.title = title, .colour_bar = ""});
        fth_panel_axis(p, FTH_AXIS_Y, &(fth_axis_options){.label = c->model[i]});
        fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.label = c->model[j]});
        fth_panel_image(p, fth_grid_of(FTH_F64, fth_tensor_data(d), a, b),
                        &(fth_image){.colours = {.map = FTH_MAP_VIRIDIS, .low = 0, .high = 2},
                                     .row_names = a <= 128 ? names->name[0] : NULL,
                                     .column_names = b <= 128 ? names->name[1] : NULL,
                                     .numbers = few,
                                     .decimals = 2});
        s = fth_figure_save(fig, path, err);
    }
    fth_figure_destroy(fig);
    fth_mem_release(c->mem, block, NULL);
    return s;
}

/* After it was written; under --plan instead. */
static void tell(fth_answer *a, fth_file_kind kind, const char *path)
{
    if (!a) return;
    fth_answer_file(a, kind, path, -1, NULL);
    if (!a->plan) fprintf(a->notes, "%s\n", path);
}

static fth_status write_distances(const sp_comparison *c, const char *dir, fth_answer *a,
                                  fth_err *err)
{
    char path[FTH_PATH];
    for (int i = 0; i < c->n; i++)
        for (int j = i + 1; j < c->n; j++) {
            const char *const two[2] = {c->model[i], c->model[j]};
            FTH_TRY(name_file(path, dir, "distance_heatmap_", two, 2, ".png", err));
            if (!a || !a->plan) FTH_TRY(draw_distances(c, i, j, path, err));
            tell(a, FTH_FILE_FIGURE, path);
        }
    return FTH_OK;
}

fth_status sp_comparison_write(const sp_comparison *c, const char *dir, fth_answer *a, fth_err *err)
{
    char path[FTH_PATH];
    const bool plan = a && a->plan;
    FTH_TRY(name_file(path, dir, "comparison_", c->model, c->n, ".json", err));
    if (!plan) FTH_TRY(write_json(c, path, err));
    tell(a, FTH_FILE_OUTPUT, path);
    if (c->xy) {
        FTH_TRY(name_file(path, dir, "comparison_", c->model, c->n, ".png", err));
        if (!plan) FTH_TRY(draw_maps(c, path, err));
        tell(a, FTH_FILE_FIGURE, path);
    }
    return write_distances(c, dir, a, err);
}
