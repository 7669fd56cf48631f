/* tables.c - see tables.h. */
#include "tables.h"

#include <math.h>
#include <string.h>

static fth_status take(fth_mem *mem, int64_t n, size_t each, const char *label, void *out,
                       fth_err *err)
{
    void *block = NULL;
    const uint64_t bytes = (uint64_t)(n > 0 ? n : 1) * each;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_POOL, bytes, label, &block, err));
    memset(block, 0, bytes);
    memcpy(out, &block, sizeof block);
    return FTH_OK;
}

fth_status fo_results_create(fo_results *r, fth_mem *mem, int64_t n, int64_t planes, fth_err *err)
{
    *r = (fo_results){.mem = mem, .n = n, .planes = planes};
    fth_status s = take(mem, n * FO_STATS, sizeof *r->stats, "statistics", &r->stats, err);
    if (s == FTH_OK) s = take(mem, n * planes, sizeof(double), "sharpness", &r->mean_log, err);
    if (s == FTH_OK) s = take(mem, n * planes, sizeof(double), "correlation", &r->corr_next, err);
    if (s == FTH_OK) s = take(mem, n * planes, 1, "kept planes", &r->kept, err);
    if (s == FTH_OK) s = take(mem, n, 1, "states", &r->state, err);
    if (s == FTH_OK) s = take(mem, n, 1, "known", &r->known, err);
    if (s == FTH_OK) s = fth_texts_create(&r->failures, mem, err);
    if (s != FTH_OK) fo_results_free(r);
    return s;
}

void fo_results_free(fo_results *r)
{
    if (!r->mem) return;
    fth_texts_free(r->failures);
    fth_mem_release(r->mem, r->known, NULL);
    fth_mem_release(r->mem, r->state, NULL);
    fth_mem_release(r->mem, r->kept, NULL);
    fth_mem_release(r->mem, r->corr_next, NULL);
    fth_mem_release(r->mem, r->mean_log, NULL);
    fth_mem_release(r->mem, r->stats, NULL);
    *r = (fo_results){0};
}

int64_t fo_results_count(const fo_results *r, fo_state state)
{
    int64_t n = 0;
    for (int64_t i = 0; i < r->n; i++) n += r->state[i] == state;
    return n;
}

void fo_results_copy(fo_results *to, int64_t i, const fo_results *from, int64_t k)
{
    const int64_t z = to->planes, row = z * (int64_t)sizeof(double);
    memcpy(to->stats + i * FO_STATS, from->stats + k * FO_STATS, FO_STATS * sizeof(double));
    memcpy(to->mean_log + i * z, from->mean_log + k * z, (size_t)row);
    memcpy(to->corr_next + i * z, from->corr_next + k * z, (size_t)row);
    memcpy(to->kept + i * z, from->kept + k * z, (size_t)z);
    to->known[i] = from->known[k];
    to->state[i] = from->state[k];
}

/* ---- tables ---- */

/* ",1.5"; nothing behind the comma where there is no number. */
static void add_real(fth_lines *t, double v)
{
    fth_lines_add(t, ",");
    if (!isnan(v)) fth_lines_real(t, v);
}

/* Columns behind name, well, t and c. */
static const fo_stat counts[] = {FO_STAT_N_TOTAL, FO_STAT_N_SHARP, FO_STAT_N_STABLE,
                                 FO_STAT_N_KEPT};
static const fo_stat rest[] = {FO_STAT_MIN_CORR, FO_STAT_MEDIAN_CORR, FO_STAT_LO, FO_STAT_HI,
                               FO_STAT_SATURATED};

static void add_metrics(fth_lines *t, const fo_input *in, const fo_labels *labels, int64_t i,
                        const double *v)
{
    char name[FTH_PATH], well[64];
    labels->name(labels->user, i, name, sizeof name);
    labels->well(labels->user, i, well, sizeof well);
    fth_lines_field(t, name);
    fth_lines_add(t, ",");
    fth_lines_field(t, well);
    fth_lines_add(t, ",%d,%d", (int)in->stack[i].t, (int)in->stack[i].c);
    for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++)
        fth_lines_add(t, ",%lld", (long long)v[counts[k]]);
    add_real(t, v[FO_STAT_PEAK_LOG]);
    add_real(t, v[FO_STAT_MEAN_LOG]);
    const double best = v[FO_STAT_BEST_Z];
    fth_lines_add(t, ",%lld", (long long)(best < 0 ? -1 : (int64_t)best + in->first_plane));
    for (size_t k = 0; k < sizeof rest / sizeof rest[0]; k++) add_real(t, v[rest[k]]);
    fth_lines_add(t, "\n");
}

static void add_planes(fth_lines *t, const fo_input *in, const fo_labels *labels, int64_t i,
                       const fo_results *r)
{
    char name[FTH_PATH];
    labels->name(labels->user, i, name, sizeof name);
    for (int64_t z = 0; z < r->planes; z++) {
        const int64_t at = i * r->planes + z;
        if (!in->present[at]) continue;
        fth_lines_field(t, name);
        fth_lines_add(t, ",%lld", (long long)(z + in->first_plane));
        add_real(t, r->mean_log[at]);
        add_real(t, r->corr_next[at]);
        fth_lines_add(t, ",%d\n", r->kept[at] != 0);
    }
}

fth_status fo_tables_save(const fo_results *r, const fo_input *in, const fo_labels *labels,
                          const char *metrics, const char *planes, fth_err *err)
{
    fth_lines t;
    fth_lines_begin(&t, r->mem);
    fth_lines_add(&t, "name,well,t,c,n_total,n_sharp,n_stable,n_kept,peak_log,mean_log,best_z,"
                      "min_corr,median_corr,lo,hi,saturated\n");
    for (int64_t i = 0; i < r->n; i++)
        if (r->known[i]) add_metrics(&t, in, labels, i, r->stats + i * FO_STATS);
    FTH_TRY(fth_lines_save(&t, metrics, err));
    fth_lines_begin(&t, r->mem);
    fth_lines_add(&t, "name,z,mean_log,corr_next,kept\n");
    for (int64_t i = 0; i < r->n; i++)
        if (r->known[i]) add_planes(&t, in, labels, i, r);
    return fth_lines_save(&t, planes, err);
}

fo_amount fo_tables_amount(const fo_results *r)
{
    enum { STACK = 400, PLANE = 120 };
    const uint64_t most = (uint64_t)(r->n * (STACK + PLANE * r->planes));
    return (fo_amount){most / 2, most};
}

/* ---- reading them again ---- */

static double number_of(const fth_csv *c, int64_t row, int64_t column)
{
    double v = (double)NAN;
    const char *text = fth_csv_get(c, row, column);
    if (text && *text && !fth_real_parse(text, &v)) v = (double)NAN;
    return v;
}

/* The stack of a name, at `from` or behind it; -1: none. Rows are in the order of stacks. */
static int64_t find_stack(const fo_results *r, const fo_labels *labels, int64_t from,
                          const char *name)
{
    char text[FTH_PATH];
    for (int64_t i = from; i < r->n; i++) {
        labels->name(labels->user, i, text, sizeof text);
        if (strcmp(text, name) == 0) return i;
    }
    return -1;
}

static void load_metrics(fo_results *r, const fo_input *in, const fo_labels *labels,
                         const fth_csv *c)
{
    enum { FIRST = 4 };
    int64_t at = 0;
    for (int64_t row = 1; row < c->rows && c->width == 16; row++) {
        const int64_t i = find_stack(r, labels, at, fth_csv_get(c, row, 0));
        if (i < 0) continue;
        at = i;
        if (r->state[i] != FO_SKIPPED) continue;
        double *v = r->stats + i * FO_STATS;
        for (int k = 0; k < 4; k++) v[counts[k]] = number_of(c, row, FIRST + k);
        v[FO_STAT_PEAK_LOG] = number_of(c, row, FIRST + 4);
        v[FO_STAT_MEAN_LOG] = number_of(c, row, FIRST + 5);
        const double best = number_of(c, row, FIRST + 6);
        v[FO_STAT_BEST_Z] = best < 0 ? -1 : best - (double)in->first_plane;
        for (int k = 0; k < 5; k++) v[rest[k]] = number_of(c, row, FIRST + 7 + k);
        r->known[i] = 1;
    }
}

/* Stacks without rows stay unknown. */
static void load_planes(fo_results *r, const fo_input *in, const fo_labels *labels,
                        const fth_csv *c, uint8_t *found)
{
    int64_t at = 0;
    for (int64_t row = 1; row < c->rows && c->width == 5; row++) {
        const int64_t i = find_stack(r, labels, at, fth_csv_get(c, row, 0));
        const double z = number_of(c, row, 1) - (double)in->first_plane;
        if (i < 0 || !(z >= 0) || z >= (double)r->planes) continue;
        at = i;
        if (!r->known[i]) continue;
        const int64_t place = i * r->planes + (int64_t)z;
        r->mean_log[place] = number_of(c, row, 2);
        r->corr_next[place] = number_of(c, row, 3);
        r->kept[place] = number_of(c, row, 4) > 0;
        found[i] = 1;
    }
}

fth_status fo_tables_load(fo_results *r, const fo_input *in, const fo_labels *labels,
                          const char *metrics, const char *planes, fth_err *err)
{
    fth_csv c;
    uint8_t *found = NULL;
    if (!fth_path_exists(metrics) || !fth_path_exists(planes)) return FTH_OK;
    FTH_TRY(fth_csv_read(&c, r->mem, metrics, err));
    load_metrics(r, in, labels, &c);
    fth_csv_free(&c);
    FTH_TRY(fth_csv_read(&c, r->mem, planes, err));
    const fth_status s = take(r->mem, r->n, 1, "found", &found, err);
    if (s == FTH_OK) load_planes(r, in, labels, &c, found);
    for (int64_t i = 0; s == FTH_OK && i < r->n; i++) r->known[i] = r->known[i] && found[i];
    fth_mem_release(r->mem, found, NULL);
    fth_csv_free(&c);
    return s;
}
