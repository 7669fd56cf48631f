/* times.c - see times.h. */
#include "times.h"

#include <math.h>
#include <string.h>

/* The first column that has one of these names; -1: none has. */
static int64_t column(const fth_csv *c, const char *name, const char *other)
{
    for (int64_t i = 0; i < c->width; i++) {
        const char *head = fth_csv_get(c, 0, i);
        if (strcmp(head, name) == 0 || strcmp(head, other) == 0) return i;
    }
    return -1;
}

static double number(const fth_csv *c, int64_t row, int64_t at)
{
    double v;
    return at >= 0 && fth_real_parse(fth_csv_get(c, row, at), &v) ? v : (double)NAN;
}

static int64_t find_well(const fo_series *s, const char *name)
{
    for (int64_t w = 0; w < s->wells; w++)
        if (strcmp(fth_texts_get(s->well, w), name) == 0) return w;
    return -1;
}

static int64_t find_time(const fo_series *s, const int64_t *t, double wanted)
{
    for (int64_t i = 0; i < s->t; i++)
        if ((double)t[i] == wanted) return i;
    return -1;
}

static void take_rows(fo_series *s, const int64_t *t, const fth_csv *c)
{
    const int64_t well = column(c, "well", "well_index"), point = column(c, "time_int", "time_int"),
                  time = column(c, "Time (s)", "experiment_time_s"),
                  um = column(c, "Width (um)", "micrometers_per_pixel"),
                  px = column(c, "Width (px)", "Width (px)");
    double first = (double)INFINITY;
    for (int64_t i = 1; i < c->rows; i++) first = fmin(first, number(c, i, time));
    for (int64_t i = 1; i < c->rows && well >= 0; i++) {
        const int64_t w = find_well(s, fth_csv_get(c, i, well)),
                      k = find_time(s, t, number(c, i, point));
        const double each = number(c, i, um) / (px >= 0 ? number(c, i, px) : 1);
        if (each > 0) s->um_per_px = each;
        if (w >= 0 && k >= 0) s->time_s[w * s->t + k] = number(c, i, time) - first;
    }
}

fth_status fo_times_read(fo_series *s, const int64_t *t, const char *path, fth_err *err)
{
    fth_csv c;
    FTH_TRY(fth_csv_read(&c, s->mem, path, err));
    take_rows(s, t, &c);
    fth_csv_free(&c);
    return FTH_OK;
}
