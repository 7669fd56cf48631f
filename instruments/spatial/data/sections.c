/* sections.c - see sections.h. Everything is in f64; positions are rounded to f32 once. */
#include "sections.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* In diagonals of the largest section. Boxes are SPACE apart and the gap is GAP: a place up to
 * SPACE - GAP outside of its section is still nearer to it, and farther from the others. */
#define SPACE 2.0
#define GAP 1.5

/* ---- lists ---- */

fth_status sp_sections_create(sp_sections *s, fth_mem *mem, const fth_texts *names, fth_err *err)
{
    const int64_t n = fth_texts_count(names);
    void *block = NULL;
    *s = (sp_sections){.mem = mem};
    fth_status status = fth_texts_create(&s->names, mem, err);
    for (int64_t i = 0; status == FTH_OK && i < n; i++) {
        const char *name = fth_texts_get(names, i);
        status = fth_texts_add(s->names, name, strlen(name), err);
    }
    const uint64_t bytes = (uint64_t)n * sizeof *s->of;
    if (status == FTH_OK) status = fth_mem_take(mem, FTH_MEM_META, bytes, "sections", &block, err);
    if (status != FTH_OK) {
        sp_sections_clear(s);
        return status;
    }
    s->of = memset(block, 0, (size_t)bytes);
    s->n = n;
    return FTH_OK;
}

fth_status sp_sections_copy(sp_sections *to, fth_mem *mem, const sp_sections *from, fth_err *err)
{
    *to = (sp_sections){0};
    if (from->n == 0) return FTH_OK;
    FTH_TRY(sp_sections_create(to, mem, from->names, err));
    memcpy(to->of, from->of, (size_t)from->n * sizeof *to->of);
    to->gap = from->gap;
    return FTH_OK;
}

void sp_sections_clear(sp_sections *s)
{
    fth_texts_free(s->names);
    if (s->mem) (void)fth_mem_release(s->mem, s->of, NULL);
    *s = (sp_sections){0};
}

int64_t sp_sections_find(const sp_sections *s, const char *name)
{
    for (int64_t i = 0; i < s->n; i++)
        if (strcmp(fth_texts_get(s->names, i), name) == 0) return i;
    return -1;
}

const char *sp_sections_name(const sp_sections *s, int64_t i)
{
    return fth_texts_get(s->names, i);
}

/* ---- the plane ---- */

static bool is_place(const float *xy)
{
    return isfinite(xy[0]) && isfinite(xy[1]);
}

/* Boxes of the source's positions. */
static fth_status find_boxes(sp_sections *s, const float *xy, const int32_t *section, int64_t n,
                             const char *label, fth_err *err)
{
    for (int64_t i = 0; i < s->n; i++)
        s->of[i] = (sp_section){.low = {(double)INFINITY, (double)INFINITY},
                                .high = {-(double)INFINITY, -(double)INFINITY}};
    for (int64_t i = 0; i < n; i++) {
        sp_section *t = &s->of[section[i]];
        if (!is_place(xy + 2 * i)) continue;
        for (int a = 0; a < 2; a++) {
            t->low[a] = fmin(t->low[a], (double)xy[2 * i + a]);
            t->high[a] = fmax(t->high[a], (double)xy[2 * i + a]);
        }
    }
    for (int64_t i = 0; i < s->n; i++)
        for (int a = 0; a < 2; a++) {
            if (s->of[i].high[a] > s->of[i].low[a]) continue;
            const fth_status status =
                s->of[i].high[a] < s->of[i].low[a]
                    ? FTH_FAIL(err, FTH_E_FILE_FORMAT,
                               "%s: section '%s' has no cells with a finite position", label,
                               sp_sections_name(s, i))
                    : FTH_FAIL(err, FTH_E_FILE_FORMAT,
                               "%s: section '%s' has no extent on axis %d: all of its cells are at "
                               "%g",
                               label, sp_sections_name(s, i), a, s->of[i].low[a]);
            fth_err_hint(err, SP_LEAVE_SECTION_OUT);
            return status;
        }
    return FTH_OK;
}

/* The geometric mean of all extents becomes `extent` (model 21.1a). */
static double find_scale(const sp_sections *s, double extent)
{
    double sum = 0;
    if (extent <= 0) return 1;
    for (int64_t i = 0; i < s->n; i++)
        for (int a = 0; a < 2; a++) sum += log(s->of[i].high[a] - s->of[i].low[a]);
    return extent / exp(sum / (2 * (double)s->n));
}

/* Tiles, as square a grid of them as can be, row by row from the top left (model 21.1b). */
static void place_tiles(sp_sections *s, double scale)
{
    double most[2] = {0, 0}, diagonal = 0;
    for (int64_t i = 0; i < s->n; i++) {
        const double w = (s->of[i].high[0] - s->of[i].low[0]) * scale,
                     h = (s->of[i].high[1] - s->of[i].low[1]) * scale;
        most[0] = fmax(most[0], w);
        most[1] = fmax(most[1], h);
        diagonal = fmax(diagonal, sqrt(w * w + h * h));
    }
    const int64_t columns = (int64_t)ceil(sqrt((double)s->n)),
                  rows = (s->n + columns - 1) / columns;
    s->gap = GAP * diagonal;
    for (int64_t i = 0; i < s->n; i++) {
        const double at[2] = {(double)(i % columns) - (double)(columns - 1) / 2,
                              (double)(rows - 1) / 2 - (double)(i / columns)};
        for (int a = 0; a < 2; a++) {
            const double tile = at[a] * (most[a] + SPACE * diagonal);
            s->of[i].offset[a] = (s->of[i].low[a] + s->of[i].high[a]) / 2 - tile / scale;
        }
    }
}

fth_status sp_sections_arrange(sp_sections *s, float *xy, const int32_t *section, int64_t n,
                               double extent, const char *label, double *scale, fth_err *err)
{
    FTH_TRY(find_boxes(s, xy, section, n, label, err));
    *scale = find_scale(s, extent);
    place_tiles(s, *scale);
    for (int64_t i = 0; i < s->n; i++)
        for (int a = 0; a < 2; a++) {
            s->of[i].low[a] = (s->of[i].low[a] - s->of[i].offset[a]) * *scale;
            s->of[i].high[a] = (s->of[i].high[a] - s->of[i].offset[a]) * *scale;
        }
    for (int64_t i = 0; i < n; i++)
        for (int a = 0; a < 2 && is_place(xy + 2 * i); a++)
            xy[2 * i + a] = (float)(((double)xy[2 * i + a] - s->of[section[i]].offset[a]) * *scale);
    return FTH_OK;
}

void sp_sections_nowhere(const sp_sections *s, double lengthscale, float xy[2])
{
    double right = 0;
    for (int64_t i = 0; i < s->n; i++) right = fmax(right, s->of[i].high[0]);
    xy[0] = (float)(right + 1000 * (s->gap + fabs(lengthscale)));
    xy[1] = 0;
}

bool sp_sections_holds(const sp_sections *s, int64_t i, const float xy[2])
{
    double d2 = 0;
    for (int a = 0; a < 2; a++) {
        const double x = (double)xy[a],
                     out = fmax(fmax(s->of[i].low[a] - x, x - s->of[i].high[a]), 0);
        d2 += out * out;
    }
    /* the gap is 3/4 of the space between two boxes: this is less than the other quarter of it */
    return sqrt(d2) < (SPACE - GAP) / GAP * 0.99 * s->gap;
}

/* ---- drawings ---- */

/* In sides of the largest section: between two, and above each for its name. */
#define BESIDE 0.1
#define ABOVE 0.24

double sp_sections_pack(sp_sections *to, const sp_sections *from)
{
    double most[2] = {0, 0};
    for (int64_t i = 0; i < from->n; i++)
        for (int a = 0; a < 2; a++)
            most[a] = fmax(most[a], from->of[i].high[a] - from->of[i].low[a]);
    const int64_t columns = (int64_t)ceil(sqrt((double)from->n));
    const double above = ABOVE * most[1];
    for (int64_t i = 0; i < from->n; i++) {
        sp_section *s = &to->of[i];
        const double at[2] = {(double)(i % columns) * (1 + BESIDE) * most[0],
                              (double)(i / columns) * (most[1] * (1 + BESIDE) + above)};
        for (int a = 0; a < 2; a++) { /* in the middle of its column, on the ground of its row */
            const double size = from->of[i].high[a] - from->of[i].low[a],
                         rest = a == 0 ? (most[0] - size) / 2 : most[1] - size;
            s->low[a] = at[a] + rest;
            s->high[a] = s->low[a] + size;
        }
    }
    return above;
}

void sp_sections_shift(const sp_sections *to, const sp_sections *from, int64_t section, float xy[2])
{
    for (int a = 0; a < 2; a++)
        xy[a] = (float)((double)xy[a] - from->of[section].low[a] + to->of[section].low[a]);
}

/* ---- JSON ---- */

static void put_numbers(fth_json_writer *w, const double *v, int n)
{
    fth_json_open(w, NULL, '[');
    for (int i = 0; i < n; i++) fth_json_real(w, NULL, v[i]);
    fth_json_close(w);
}

void sp_sections_put_names(fth_json_writer *w, const char *key, const sp_sections *s)
{
    fth_json_open(w, key, '[');
    for (int64_t i = 0; i < s->n; i++) fth_json_text(w, NULL, sp_sections_name(s, i));
    fth_json_close(w);
}

void sp_sections_put(fth_json_writer *w, const char *key, const sp_sections *s)
{
    fth_json_open(w, key, '{');
    fth_json_open(w, "cells", '[');
    for (int64_t i = 0; i < s->n; i++) fth_json_int(w, NULL, s->of[i].cells);
    fth_json_close(w);
    fth_json_open(w, "offsets", '[');
    for (int64_t i = 0; i < s->n; i++) put_numbers(w, s->of[i].offset, 2);
    fth_json_close(w);
    fth_json_open(w, "boxes", '[');
    for (int64_t i = 0; i < s->n; i++) {
        const double box[4] = {s->of[i].low[0], s->of[i].low[1], s->of[i].high[0],
                               s->of[i].high[1]};
        put_numbers(w, box, 4);
    }
    fth_json_close(w);
    fth_json_real(w, "gap", s->gap);
    fth_json_close(w);
}

static fth_status no_list(const char *path, const char *key, const char *what, int64_t n,
                          fth_err *err)
{
    return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                    "%s: '%s' of '%s' should have %s for each of %" PRId64 " sections", path, key,
                    SP_SECTIONS, what, n);
}

static bool read_numbers(const fth_json_value *v, double *to, int n)
{
    bool ok = v && fth_json_count(v) == n;
    for (int i = 0; ok && i < n; i++) {
        to[i] = fth_json_get_real(fth_json_at(v, i), NULL, (double)NAN);
        ok = isfinite(to[i]);
    }
    return ok;
}

static fth_status read_places(sp_sections *s, const fth_json_value *v, const char *path,
                              fth_err *err)
{
    const fth_json_value *offsets = fth_json_get(v, "offsets"), *boxes = fth_json_get(v, "boxes"),
                         *cells = fth_json_get(v, "cells");
    s->gap = fth_json_get_real(v, "gap", 0);
    if (!(s->gap > 0 && isfinite(s->gap)))
        return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: 'gap' of '%s' should be a number above 0",
                        path, SP_SECTIONS);
    for (int64_t i = 0; i < s->n; i++) {
        double box[4];
        if (!offsets || !read_numbers(fth_json_at(offsets, i), s->of[i].offset, 2))
            return no_list(path, "offsets", "two numbers", s->n, err);
        if (!boxes || !read_numbers(fth_json_at(boxes, i), box, 4))
            return no_list(path, "boxes", "four numbers", s->n, err);
        s->of[i].cells = cells ? fth_json_get_int(fth_json_at(cells, i), NULL, 0) : 0;
        if (s->of[i].cells < 1) return no_list(path, "cells", "the number of cells", s->n, err);
        for (int a = 0; a < 2; a++) s->of[i].low[a] = box[a], s->of[i].high[a] = box[2 + a];
    }
    return FTH_OK;
}

fth_status sp_sections_parse(sp_sections *out, fth_mem *mem, const fth_json_value *names,
                             const fth_json_value *rest, const char *path, fth_err *err)
{
    *out = (sp_sections){0};
    fth_texts *list = NULL;
    FTH_TRY(fth_texts_create(&list, mem, err));
    fth_status s = fth_json_count(names) > 0
                       ? FTH_OK
                       : FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: '%s' is not a list of names", path,
                                  SP_SECTION_NAMES);
    for (int64_t i = 0; s == FTH_OK && i < fth_json_count(names); i++) {
        const char *name = fth_json_get_text(fth_json_at(names, i), NULL, NULL);
        s = name ? fth_texts_add(list, name, strlen(name), err)
                 : FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: '%s' is not a list of names", path,
                            SP_SECTION_NAMES);
    }
    if (s == FTH_OK) s = sp_sections_create(out, mem, list, err);
    fth_texts_free(list);
    if (s == FTH_OK && rest) s = read_places(out, rest, path, err);
    if (s != FTH_OK) sp_sections_clear(out);
    return s;
}
