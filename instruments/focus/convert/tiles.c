/* tiles.c - the raw stacks of a Keyence as a series: every tile of a well is a field of it; see
 * series.h.
 *
 * A tile that a time lacks, and planes that a tile lacks, are black and counted.
 */
#include "../process/job.h"
#include "series.h"

#include <math.h>
#include <string.h>

typedef struct tiles {
    fth_mem *mem;
    fo_job job;
    fo_input_view view;
    fth_source source; /* stack z y x */
    const fo_series *series;
    int64_t *stack; /* [well and tile][t]; -1: there is none */
    int32_t *time;  /* [t]: number of its folder */
    int *part;      /* [series of the job]: number of its well here; -1: none */
} tiles;

static void end(void *self)
{
    tiles *k = self;
    fo_job_close(&k->job);
    fth_mem_release(k->mem, k->stack, NULL);
    fth_mem_release(k->mem, k->time, NULL);
    fth_mem_release(k->mem, k->part, NULL);
    fth_mem_release(k->mem, k, NULL);
}

static bool is_present(const tiles *k, int64_t stack, int64_t z)
{
    const fo_input *in = &k->job.in;
    return stack >= 0 && in->present[stack * in->planes + z];
}

static fth_status read(void *self, const int64_t *lo, const int64_t *n, void *dst, fth_err *err)
{
    const tiles *k = self;
    const fo_series *s = k->series;
    const int64_t plane = n[1] * n[2] * fth_dtype_size(s->dtype);
    char *to = dst;
    for (int64_t i = lo[0]; i < lo[0] + n[0]; i++, to += plane) {
        const fo_place at = fo_series_place(s, i);
        const int64_t stack = k->stack[at.well * s->t + at.t];
        const int64_t from[] = {stack, at.z, lo[1], lo[2]}, count[] = {1, 1, n[1], n[2]};
        if (is_present(k, stack, at.z))
            FTH_TRY(k->source.read(k->source.self, from, count, to, err));
        else
            memset(to, 0, (size_t)plane);
    }
    return FTH_OK;
}

/* ---- what there is ---- */

static fth_status take(fth_mem *mem, int64_t n, size_t each, void *out, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_POOL, (uint64_t)(n + 1) * each, "tiles", &block, err));
    memcpy(out, &block, sizeof block);
    return FTH_OK;
}

/* Times of all wells together, in their order. */
static void list_times(tiles *k, fo_series *s)
{
    const fo_input *in = &k->job.in;
    for (int32_t last = -1;;) {
        int32_t next = INT32_MAX;
        for (int64_t i = 0; i < in->n_stacks; i++)
            if (in->stack[i].t > last && in->stack[i].t < next) next = in->stack[i].t;
        if (next == INT32_MAX) return;
        k->time[s->t++] = last = next;
    }
}

static void list_wells(tiles *k, fo_series *s)
{
    const fo_keyence_plate *plate = &k->job.keyence;
    s->fields = 1;
    for (int64_t p = 0; p < plate->n_series; p++) {
        k->part[p] = plate->tiles[p] > 0 ? (int)s->wells++ : -1;
        if (plate->tiles[p] > s->fields) s->fields = plate->tiles[p];
    }
    s->wells *= s->fields;
}

static void place_stacks(tiles *k, fo_series *s)
{
    const fo_input *in = &k->job.in;
    for (int64_t i = 0; i < s->wells * s->t; i++) k->stack[i] = -1;
    for (int64_t i = 0, t = 0; i < in->n_stacks; i++) {
        const fo_stack *of = &in->stack[i];
        const int64_t well = k->part[of->p] * s->fields + of->b;
        for (t = 0; k->time[t] != of->t;) t++;
        k->stack[well * s->t + t] = i;
    }
    for (int64_t i = 0; i < s->wells * s->t; i++)
        for (int64_t z = 0; z < s->z; z++) s->missing += !is_present(k, k->stack[i], z);
}

/* Times count from the first of all. */
static fth_status describe(tiles *k, fo_series *s, fth_err *err)
{
    const fo_job *job = &k->job;
    double first = (double)INFINITY;
    FTH_TRY(fo_series_prepare(s, err));
    for (int64_t i = 0; i < job->in.n_stacks; i++) first = fmin(first, job->keyence.seconds[i]);
    for (int64_t p = 0; p < job->keyence.n_series; p++)
        for (int64_t f = 0; f < s->fields && k->part[p] >= 0; f++) {
            char name[FO_WELL_NAME];
            fo_well_name(job->keyence.well[p], name);
            FTH_TRY(fth_texts_add(s->well, name, strlen(name), err));
        }
    for (int64_t i = 0; i < s->wells * s->t; i++)
        if (k->stack[i] >= 0) s->time_s[i] = job->keyence.seconds[k->stack[i]] - first;
    FTH_TRY(fth_texts_add(s->channel, job->keyence.header.channel,
                          strlen(job->keyence.header.channel), err));
    fo_series_finish(s);
    return FTH_OK;
}

static void make_source(tiles *k, fo_series *s)
{
    const fth_source *f = &k->source;
    s->source = (fth_source){.kind = "tiles",
                             .self = k,
                             .dtype = s->dtype,
                             .n_axes = 3,
                             .size = {s->wells * s->t * s->z, s->y, s->x},
                             .read = read,
                             .libraries = f->libraries,
                             .billed_bytes = f->billed_bytes,
                             .concurrent = f->concurrent,
                             .thread_bytes = f->thread_bytes,
                             .part = {1, f->part[2], f->part[3]}};
}

static fth_status open_all(tiles *k, fo_series *s, const fth_config *cfg,
                           const fo_series_options *opt, fth_err *err)
{
    FTH_TRY(fo_job_open(&k->job, k->mem, cfg, err));
    fo_input *in = &k->job.in;
    snprintf(s->path, sizeof s->path, "%s", k->job.place.raw);
    s->z = in->planes;
    s->c = 1;
    s->y = in->rows;
    s->x = in->columns;
    s->has_z = true;
    s->dtype = in->dtype;
    s->um_per_px = opt->um_per_px > 0 ? opt->um_per_px : in->um_per_px;
    s->z_step_um = opt->z_step_um > 0 ? opt->z_step_um : in->z_step_um;
    s->files = k->job.files.n;
    FTH_TRY(take(k->mem, in->n_stacks, sizeof *k->time, &k->time, err));
    FTH_TRY(take(k->mem, k->job.keyence.n_series, sizeof *k->part, &k->part, err));
    list_times(k, s);
    list_wells(k, s);
    FTH_TRY(take(k->mem, s->wells * s->t, sizeof *k->stack, &k->stack, err));
    place_stacks(k, s);
    FTH_TRY(describe(k, s, err));
    k->view = (fo_input_view){.input = in};
    k->source = fo_input_source(&k->view);
    make_source(k, s);
    return FTH_OK;
}

fth_status fo_series_open_tiles(fo_series *s, fth_mem *mem, const fth_config *cfg,
                                const fo_series_options *opt, fth_err *err)
{
    void *block = NULL;
    *s = (fo_series){0};
    FTH_TRY(fth_mem_take(mem, FTH_MEM_POOL, sizeof(tiles), "series", &block, err));
    tiles *k = memset(block, 0, sizeof *k);
    k->mem = mem;
    k->series = s;
    *s = (fo_series){.mem = mem, .self = k, .end = end};
    const fth_status status = open_all(k, s, cfg, opt, err);
    if (status != FTH_OK) fo_series_close(s);
    return status;
}
