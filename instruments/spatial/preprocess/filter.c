/* filter.c - filters of cells, without file access. */
#include "filter.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

const char *const sp_drop_names[SP_DROP_KINDS] = {
    [SP_DROP_REGION] = "missing_region",     [SP_DROP_MT] = "mitochondrial",
    [SP_DROP_COUNTS] = "min_counts",         [SP_DROP_GENES] = "min_genes",
    [SP_DROP_POSITION] = "missing_position", [SP_DROP_COUNT] = "missing_count",
    [SP_DROP_LABEL] = "missing_group",       [SP_DROP_GROUP] = "small_group",
    [SP_DROP_SECTION] = "missing_section"};

bool sp_is_mitochondrial(const char *gene)
{
    return strncasecmp(gene, "mt-", 3) == 0;
}

/* ---- positions ---- */

static fth_status not_finite(int64_t cell, int axis, float v, const char *label, fth_err *err)
{
    const fth_status s =
        FTH_FAIL(err, FTH_E_FILE_FORMAT,
                 "%s: cell %" PRId64 " has the coordinate %g on axis %d; positions cannot be "
                 "brought to a common scale",
                 label, cell, (double)v, axis);
    fth_err_hint(err, "take these cells out of the file, name other positions with "
                      "preprocessing.coord_key or preprocessing.coord_columns, or write "
                      "preprocessing.rescale: false, which drops cells without a position");
    return s;
}

fth_status sp_rescale(float *xy, int64_t n, double scale, const char *label, sp_frame *frame,
                      fth_err *err)
{
    float low[2] = {INFINITY, INFINITY}, high[2] = {0, 0}, sum[2] = {0, 0};
    for (int64_t i = 0; i < 2 * n; i++) {
        if (!isfinite(xy[i])) return not_finite(i / 2, (int)(i % 2), xy[i], label, err);
        low[i % 2] = fminf(low[i % 2], xy[i]);
    }
    for (int64_t i = 0; i < 2 * n; i++) {
        xy[i] -= low[i % 2];
        high[i % 2] = fmaxf(high[i % 2], xy[i]);
    }
    for (int a = 0; a < 2; a++)
        if (!(high[a] > 0) || !isfinite(high[a])) {
            const fth_status s =
                FTH_FAIL(err, FTH_E_FILE_FORMAT,
                         "%s: axis %d has no extent: it is %g over %" PRId64 " cells", label, a,
                         (double)high[a], n);
            fth_err_hint(err, "name positions in a plane with preprocessing.coord_key or "
                              "preprocessing.coord_columns");
            return s;
        }
    const float g = expf((logf(high[0]) + logf(high[1])) / 2), box = 4, by = (float)scale;
    for (int64_t i = 0; i < 2 * n; i++) {
        xy[i] = xy[i] * box / g;
        sum[i % 2] += xy[i]; /* in the order of the rows, as NumPy sums over an axis */
    }
    for (int64_t i = 0; i < 2 * n; i++) xy[i] = (xy[i] - sum[i % 2] / (float)n) * by;
    if (!frame) return FTH_OK;
    *frame = (sp_frame){.known = true, .scale = (double)box / (double)g * (double)by};
    for (int a = 0; a < 2; a++)
        frame->offset[a] = (double)low[a] + (double)(sum[a] / (float)n) * (double)g / (double)box;
    return FTH_OK;
}

/* ---- cells ---- */

void sp_cells_move(sp_cells *c, int64_t from, int64_t to)
{
    c->row[to] = c->row[from];
    c->xy[2 * to] = c->xy[2 * from];
    c->xy[2 * to + 1] = c->xy[2 * from + 1];
    if (c->code) c->code[to] = c->code[from];
    if (c->section) c->section[to] = c->section[from];
}

void sp_filter_missing(sp_cells *c, const bool *bad, const fth_texts *names,
                       int64_t dropped[SP_DROP_KINDS])
{
    int64_t n = 0;
    for (int64_t i = 0; i < c->n; i++) {
        if (isnan(c->xy[2 * i]) || isnan(c->xy[2 * i + 1]))
            dropped[SP_DROP_POSITION]++;
        else if (bad && bad[c->row[i]])
            dropped[SP_DROP_COUNT]++;
        else if (c->code &&
                 (c->code[i] < 0 || sp_name_is_missing(fth_texts_get(names, c->code[i]))))
            dropped[SP_DROP_LABEL]++;
        else
            sp_cells_move(c, i, n++);
    }
    c->n = n;
}

int64_t sp_group_threshold(double fraction, int64_t n)
{
    const int64_t t = (int64_t)nearbyint(fraction * (double)n);
    return t > 1 ? t : 1;
}

int64_t sp_filter_small(sp_cells *c, int64_t groups, int64_t threshold, int32_t *map,
                        int64_t dropped[SP_DROP_KINDS])
{
    memset(map, 0, (size_t)groups * sizeof *map);
    for (int64_t i = 0; i < c->n; i++) map[c->code[i]]++;
    int64_t stay = 0, n = 0;
    for (int64_t g = 0; g < groups; g++)
        map[g] = threshold <= 1 || map[g] >= threshold ? (int32_t)stay++ : -1;
    for (int64_t i = 0; i < c->n; i++) {
        if (map[c->code[i]] < 0) continue;
        c->code[i] = map[c->code[i]];
        sp_cells_move(c, i, n++);
    }
    dropped[SP_DROP_GROUP] += c->n - n;
    c->n = n;
    return stay;
}
