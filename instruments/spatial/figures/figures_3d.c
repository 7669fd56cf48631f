/* figures_3d.c - factors as surfaces over the section, seen from 15 degrees above and 60 to the
 * left.
 *
 * Points are projected here, and panels draw them like any others. They are drawn back to front by
 * ground position alone, which is right for a surface and the same for all panels of a figure. The
 * upper edge of a map is the far edge, so that a surface is the tilted map.
 */
#include "figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double PI = 3.14159265358979323846;
static const double ELEVATION = 15, AZIMUTH = -60,
                    HEIGHT = 0.8; /* of the box, its half width is 1 */

enum { EDGES = 9 };

typedef struct scene {
    sp_drawing *d;
    sp_rows rows;          /* [3 * panel + (x, y, number)][cell] */
    const sp_rows *values; /* number of a panel: row[panel] of it */
    const int64_t *row;
    double high;   /* the number at the top of the box */
    double inches; /* of a panel */
    double half[2], middle[2], scale;
    int32_t *order;           /* cells, the farthest first; NULL until first used */
    double edge[EDGES][2][2]; /* [edge][x, y][end] */
    double corner[2];         /* positions of the tick labels of the vertical axis */
} scene;

/* ---- projection ---- */

static void project(const double at[3], double *x, double *y)
{
    const double e = ELEVATION * PI / 180, a = AZIMUTH * PI / 180;
    *x = -sin(a) * at[0] + cos(a) * at[1];
    *y = -sin(e) * cos(a) * at[0] - sin(e) * sin(a) * at[1] + cos(e) * at[2];
}

/* Ground of a cell, from -1 to 1 along the longer side; the second axis points away. */
static void ground(const scene *s, int64_t cell, double *x, double *y)
{
    const float *at = s->d->xy + 2 * cell;
    *x = ((double)at[0] - s->middle[0]) * s->scale;
    *y = -((double)at[1] - s->middle[1]) * s->scale;
}

/* Depth of a cell, larger towards the eye. */
static float nearness(const scene *s, int64_t cell)
{
    const double a = AZIMUTH * PI / 180;
    double x, y;
    ground(s, cell, &x, &y);
    return (float)(cos(a) * x + sin(a) * y);
}

typedef struct place {
    float near;
    int32_t cell;
} place;

static int farther(const void *a, const void *b)
{
    const place *p = a, *q = b;
    if (p->near != q->near) return p->near < q->near ? -1 : 1;
    return (p->cell > q->cell) - (p->cell < q->cell);
}

static fth_status find_order(scene *s, fth_err *err)
{
    const int64_t n = s->d->cells;
    void *places = NULL, *order = NULL;
    FTH_TRY(
        fth_mem_take(s->d->mem, FTH_MEM_ANY, (uint64_t)n * sizeof(place), "depth", &places, err));
    const fth_status status =
        fth_mem_take(s->d->mem, FTH_MEM_ANY, (uint64_t)n * sizeof(int32_t), "order", &order, err);
    if (status == FTH_OK) {
        place *p = places;
        s->order = order;
        for (int64_t i = 0; i < n; i++) p[i] = (place){nearness(s, i), (int32_t)i};
        qsort(p, (size_t)n, sizeof *p, farther);
        for (int64_t i = 0; i < n; i++) s->order[i] = p[i].cell;
    }
    (void)fth_mem_release(s->d->mem, places, NULL);
    return status;
}

static void put_panel(const scene *s, const float *value, float *to)
{
    const int64_t n = s->d->cells;
    for (int64_t k = 0; k < n; k++) {
        const int64_t i = s->order[k];
        const double part = fmin(fmax((double)value[i] / s->high, 0), 1);
        double at[3] = {0, 0, HEIGHT * part}, x, y;
        ground(s, i, &at[0], &at[1]);
        project(at, &x, &y);
        to[k] = isnan(value[i]) ? NAN : (float)x;
        to[n + k] = (float)y;
        to[2 * n + k] = value[i];
    }
}

static fth_status make_panels(void *user, int64_t first, int64_t count, float *to, fth_err *err)
{
    scene *s = user;
    const int64_t n = s->d->cells;
    void *value = NULL;
    if (!s->order) FTH_TRY(find_order(s, err));
    fth_status status =
        fth_mem_take(s->d->mem, FTH_MEM_ANY, (uint64_t)n * sizeof(float), "numbers", &value, err);
    for (int64_t i = 0; status == FTH_OK && i < count; i += 3) {
        const fth_source *from = &s->values->source;
        status = from->read(from->self, (int64_t[]){s->row[(first + i) / 3], 0}, (int64_t[]){1, n},
                            value, err);
        if (status == FTH_OK) put_panel(s, value, to + i * n);
    }
    (void)fth_mem_release(s->d->mem, value, NULL);
    return status;
}

/* ---- the box ---- */

/* Floor, the three vertical edges behind and beside it, and the two edges that join them above. */
static void make_box(scene *s)
{
    static const int corner[EDGES][2][3] = {
        {{-1, -1, 0}, {1, -1, 0}}, {{1, -1, 0}, {1, 1, 0}},    {{1, 1, 0}, {-1, 1, 0}},
        {{-1, 1, 0}, {-1, -1, 0}}, {{-1, -1, 0}, {-1, -1, 1}}, {{-1, 1, 0}, {-1, 1, 1}},
        {{1, 1, 0}, {1, 1, 1}},    {{-1, -1, 1}, {-1, 1, 1}},  {{-1, 1, 1}, {1, 1, 1}}};
    for (int e = 0; e < EDGES; e++)
        for (int end = 0; end < 2; end++) {
            const int *c = corner[e][end];
            const double at[3] = {c[0] * s->half[0], c[1] * s->half[1], c[2] * HEIGHT};
            project(at, &s->edge[e][0][end], &s->edge[e][1][end]);
        }
    s->corner[0] = s->edge[4][0][0];
}

static void add_panel(const scene *s, fth_panel *p, int64_t i, const char *title)
{
    const fth_line line = {.colour = fth_rgb(150, 150, 150), .width = 0.7};
    const fth_note note = {.anchor = FTH_ANCHOR_RIGHT, .size = 7};
    char top[24];
    double x0 = 0, x1 = 0, y0 = 0, y1 = 0;
    for (int e = 0; e < EDGES; e++)
        for (int end = 0; end < 2; end++) {
            x0 = fmin(x0, s->edge[e][0][end]), x1 = fmax(x1, s->edge[e][0][end]);
            y0 = fmin(y0, s->edge[e][1][end]), y1 = fmax(y1, s->edge[e][1][end]);
        }
    fth_panel_set(p,
                  &(fth_panel_options){.title = title, .aspect = FTH_ASPECT_EQUAL, .bare = true});
    fth_panel_axis(p, FTH_AXIS_X,
                   &(fth_axis_options){.low = x0 - 0.4, .high = x1 + 0.05, .no_ticks = true});
    fth_panel_axis(p, FTH_AXIS_Y,
                   &(fth_axis_options){.low = y0 - 0.05, .high = y1 + 0.05, .no_ticks = true});
    for (int e = 0; e < EDGES; e++)
        fth_panel_line(p, fth_column_of(FTH_F64, s->edge[e][0], 2),
                       fth_column_of(FTH_F64, s->edge[e][1], 2), &line);
    fth_panel_points(p, sp_rows_get(&s->rows, 3 * i), sp_rows_get(&s->rows, 3 * i + 1),
                     &(fth_points){.area = sp_draw_area(s->d->cells, s->inches),
                                   .alpha = 0.8,
                                   .values = sp_rows_get(&s->rows, 3 * i + 2),
                                   .colours = {.map = FTH_MAP_EMBER, .low = 0, .high = s->high}});
    snprintf(top, sizeof top, "%.3g", s->high);
    fth_panel_text(p, s->corner[0] - 0.04, s->edge[4][1][0], "0", &note);
    fth_panel_text(p, s->corner[0] - 0.04, s->edge[4][1][1], top, &note);
}

/* ---- figures ---- */

typedef struct page {
    const sp_rows *values;
    const int64_t *row; /* [panel] */
    int64_t panels, columns;
    double inches, high;
    const char *(*title)(const sp_drawing *d, int64_t panel, int64_t columns, const int64_t *group,
                         char text[64]);
    const int64_t *group;
    const char *name, *brief;
} page;

static fth_status draw_page(sp_drawing *d, const page *w, fth_err *err)
{
    scene s = {.d = d, .values = w->values, .row = w->row, .high = w->high, .inches = w->inches};
    fth_figure *fig = NULL;
    for (int k = 0; k < 2; k++) {
        s.middle[k] = (d->low[k] + d->high[k]) / 2;
        s.half[k] = (d->high[k] - d->low[k]) / 2;
    }
    s.scale = 1 / fmax(fmax(s.half[0], s.half[1]), 1e-30);
    s.half[0] *= s.scale, s.half[1] *= s.scale;
    make_box(&s);
    sp_rows_open(&s.rows, d, 3 * w->panels, d->cells, 3,
                 (uint64_t)d->cells * (sizeof(place) + sizeof(int32_t) + sizeof(float)),
                 make_panels, &s);
    fth_status status = sp_draw_figure(d,
                                       (fth_figure_options){.panels = w->panels,
                                                            .columns = w->columns,
                                                            .panel_width = w->inches,
                                                            .panel_height = 0.8 * w->inches,
                                                            .colour_bar = "factor"},
                                       &fig, err);
    for (int64_t i = 0; status == FTH_OK && i < w->panels; i++) {
        char text[64];
        add_panel(&s, fth_figure_panel(fig, i), i, w->title(d, i, w->columns, w->group, text));
    }
    if (status == FTH_OK) status = sp_draw_save(d, fig, w->name, w->brief, err);
    sp_rows_close(&s.rows);
    (void)fth_mem_release(d->mem, s.order, NULL);
    return status;
}

static const char *factor_title(const sp_drawing *d, int64_t panel, int64_t columns,
                                const int64_t *group, char text[64])
{
    (void)columns, (void)group;
    return sp_draw_factor(d, panel, true, text);
}

fth_status sp_figure_factors_3d(sp_drawing *d, fth_err *err)
{
    int64_t *row = NULL;
    sp_transposed t;
    page w = {.panels = d->factors,
              .columns = d->factors < 5 ? d->factors : 5,
              .inches = 3,
              .title = factor_title,
              .name = "factors_spatial_3d.png",
              .brief = "factors as surfaces"};
    FTH_TRY(sp_draw_take(d, (uint64_t)d->factors * sizeof *row, &row, err));
    for (int64_t i = 0; i < d->factors; i++) row[i] = i;
    sp_transposed_open(&t, d, &d->factor_file, 0);
    w.values = &t.rows, w.row = row;
    fth_status s = sp_rows_limit(&t.rows, 0, d->factors, 99, 1e-12, &w.high, err);
    if (s == FTH_OK) s = draw_page(d, &w, err);
    sp_rows_close(&t.rows);
    sp_draw_give(d, row, (uint64_t)d->factors * sizeof *row);
    return s;
}

/* ---- as if all cells were of one group ---- */

/* Groups by size, the largest first; ties by lower number. */
static void sort_groups(const sp_drawing *d, int64_t *group, int64_t *count)
{
    for (int64_t g = 0; g < d->groups; g++) group[g] = g;
    for (int64_t i = 0; d->group && i < d->cells; i++) count[d->group[i]]++;
    for (int64_t i = 1; i < d->groups; i++)
        for (int64_t k = i; k > 0 && count[group[k]] > count[group[k - 1]]; k--) {
            const int64_t swap = group[k];
            group[k] = group[k - 1], group[k - 1] = swap;
        }
}

/* Rows are groups, columns factors. */
static const char *group_title(const sp_drawing *d, int64_t panel, int64_t columns,
                               const int64_t *group, char text[64])
{
    char name[48];
    snprintf(text, 64, "Factor %lld\n%s", (long long)(panel % columns) + 1,
             sp_draw_short(d->group_names[group[panel / columns]], 22, name, sizeof name));
    return text;
}

static fth_status draw_groups(sp_drawing *d, int64_t factors, int64_t groups, page *w, fth_err *err)
{
    const int64_t G = d->groups;
    const uint64_t bytes = (uint64_t)(2 * G + factors * groups) * sizeof(int64_t);
    int64_t *group = NULL;
    sp_transposed t;
    sp_groupwise maps;
    FTH_TRY(sp_draw_take(d, bytes, &group, err));
    int64_t *row = group + 2 * G;
    sort_groups(d, group, group + G);
    for (int64_t i = 0; i < factors * groups; i++) row[i] = i / factors * d->factors + i % factors;
    w->panels = factors * groups, w->columns = factors;
    w->row = row, w->group = group, w->title = group_title;
    sp_transposed_open(&t, d, &d->factor_file, 0);
    fth_status s = sp_rows_limit(&t.rows, 0, d->factors, 99, 1e-12, &w->high, err);
    sp_rows_close(&t.rows);
    sp_groupwise_open(&maps, d, group, groups);
    w->values = &maps.rows;
    if (s == FTH_OK) s = draw_page(d, w, err);
    sp_rows_close(&maps.rows);
    sp_draw_give(d, group, bytes);
    return s;
}

fth_status sp_figure_groupwise_3d(sp_drawing *d, fth_err *err)
{
    page w = {.inches = 3,
              .name = "groupwise_factors_3d.png",
              .brief = "the same as surfaces, largest groups"};
    return draw_groups(d, d->factors < 2 ? d->factors : 2, d->groups < 3 ? d->groups : 3, &w, err);
}

fth_status sp_figure_groupwise_3d_complete(sp_drawing *d, fth_err *err)
{
    page w = {.name = "groupwise_factors_3d_complete.png",
              .brief = "the same as surfaces, all groups"};
    int64_t groups = d->groups;
    if (groups > 10000 / d->factors) groups = 10000 / d->factors;
    w.inches = fmin(2, 210 / (double)(groups > d->factors ? groups : d->factors));
    return draw_groups(d, d->factors, groups, &w, err);
}
