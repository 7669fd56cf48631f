/* series.c - what both kinds of series share; see series.h. */
#include "series.h"

#include "../plate/well.h"

#include <math.h>
#include <string.h>

/* ---- lists ---- */

bool fo_list_get(const char *list, int64_t k, char *field, size_t bytes)
{
    const char *at = list;
    for (; k > 0 && at; k--) {
        at = strchr(at, ',');
        if (at) at++;
    }
    if (!at || !*list) return false;
    snprintf(field, bytes, "%.*s", (int)strcspn(at, ","), at);
    return true;
}

int64_t fo_list_find(const char *list, const char *name, int64_t i)
{
    char field[64], number[24];
    snprintf(number, sizeof number, "%lld", (long long)i);
    for (int64_t k = 0; fo_list_get(list, k, field, sizeof field); k++)
        if ((name[0] && strcmp(field, name) == 0) || strcmp(field, number) == 0) return k;
    return -1;
}

/* ---- a series ---- */

fo_place fo_series_place(const fo_series *s, int64_t plane)
{
    fo_place at;
    at.c = plane % s->c, plane /= s->c;
    at.z = plane % s->z, plane /= s->z;
    at.t = plane % s->t;
    at.well = plane / s->t;
    return at;
}

fth_status fo_series_prepare(fo_series *s, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth_texts_create(&s->well, s->mem, err));
    FTH_TRY(fth_texts_create(&s->channel, s->mem, err));
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_POOL, (uint64_t)(s->wells * s->t) * sizeof(double),
                         "times", &block, err));
    s->time_s = block;
    for (int64_t i = 0; i < s->wells * s->t; i++) s->time_s[i] = (double)NAN;
    return FTH_OK;
}

void fo_series_finish(fo_series *s)
{
    if (s->fields < 1) s->fields = 1;
    s->is_plate = s->wells > 0;
    for (int64_t i = 0; i < s->wells; i += s->fields) {
        const int well = fo_well_parse(fth_texts_get(s->well, i));
        s->is_plate = s->is_plate && well >= 0;
        for (int64_t k = 0; s->is_plate && k < i; k += s->fields)
            s->is_plate = fo_well_parse(fth_texts_get(s->well, k)) != well;
    }
    for (int64_t w = 0; w < s->wells && s->t > 1 && !(s->period_s > 0); w++) {
        const double *time = s->time_s + w * s->t;
        const double steps = (time[s->t - 1] - time[0]) / (double)(s->t - 1);
        if (steps > 0) s->period_s = steps; /* false where one is not known */
    }
}

void fo_series_close(fo_series *s)
{
    if (!s->mem) return;
    if (s->end) s->end(s->self);
    fth_mem_release(s->mem, s->time_s, NULL);
    fth_texts_free(s->well);
    fth_texts_free(s->channel);
    *s = (fo_series){0};
}
