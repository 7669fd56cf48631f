/* raw.c - the stacks of a file as a series; see series.h. */
#include "../input/problems.h"
#include "series.h"

#include <math.h>
#include <string.h>

typedef struct raw {
    fth_mem *mem;
    fth_images *images;
    fth_source source; /* t p z c y x */
    const fo_series *series;
    int64_t *position, *channel; /* of the file, for each well and channel of the series */
    fo_range times;
    const fth_texts *names; /* of the positions; NULL: those of the file */
} raw;

static void end(void *self)
{
    raw *r = self;
    fth_source_close(&r->source);
    fth_images_close(r->images);
    fth_mem_release(r->mem, r->position, NULL);
    fth_mem_release(r->mem, r->channel, NULL);
    fth_mem_release(r->mem, r, NULL);
}

/* Channels that are neighbours in the file are read at once: a frame has all of them. */
static fth_status read(void *self, const int64_t *lo, const int64_t *n, void *dst, fth_err *err)
{
    const raw *r = self;
    const fo_series *s = r->series;
    const int64_t plane = n[1] * n[2] * fth_dtype_size(s->dtype);
    char *to = dst;
    for (int64_t i = lo[0], end_at = lo[0] + n[0]; i < end_at;) {
        const fo_place at = fo_series_place(s, i);
        int64_t run = 1;
        while (at.c + run < s->c && i + run < end_at &&
               r->channel[at.c + run] == r->channel[at.c] + run)
            run++;
        const int64_t from[] = {r->times.first + at.t * r->times.step,
                                r->position[at.well],
                                at.z,
                                r->channel[at.c],
                                lo[1],
                                lo[2]};
        const int64_t count[] = {1, 1, 1, run, n[1], n[2]};
        FTH_TRY(r->source.read(r->source.self, from, count, to, err));
        i += run;
        to += run * plane;
    }
    return FTH_OK;
}

/* ---- what is wanted ---- */

static const char *position_name(const raw *r, int64_t p)
{
    const char *name =
        r->names ? fth_texts_get(r->names, p) : fth_images_get_position(r->images, p).name;
    return name ? name : "";
}

static const char *channel_name(const raw *r, int64_t c)
{
    const char *name = fth_images_channel(r->images, c);
    return name ? name : "";
}

/* Those of n that a list names, in the order of the file; a name without a match is a problem. */
static int64_t choose(const raw *r, const char *list, const char *flag, int64_t n,
                      const char *(*name)(const raw *r, int64_t i), int64_t *chosen,
                      fo_problems *problems)
{
    int64_t count = 0;
    char field[64];
    for (int64_t i = 0; i < n; i++) {
        if (name == position_name && r->names && !*name(r, i)) continue; /* no well */
        if (!*list || fo_list_find(list, name(r, i), i) >= 0) chosen[count++] = i;
    }
    for (int64_t k = 0; fo_list_get(list, k, field, sizeof field); k++) {
        bool found = false;
        for (int64_t i = 0; i < n && !found; i++) found = fo_list_find(field, name(r, i), i) >= 0;
        if (!found)
            fo_problems_add(problems, false, "'fathom focus info FILE' lists what it has",
                            "--%s: nothing is called '%.40s'", flag, field);
    }
    return count;
}

static fth_status take(fth_mem *mem, int64_t n, int64_t **out, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_POOL, (uint64_t)(n + 1) * sizeof **out, "selection", &block,
                         err));
    *out = block;
    return FTH_OK;
}

static fth_status select_all(raw *r, fo_series *s, const fth_images_info *info,
                             const fo_series_options *opt, fth_err *err)
{
    fo_problems problems = {0};
    const int64_t *size = info->size;
    FTH_TRY(take(r->mem, size[FTH_IMAGES_P], &r->position, err));
    FTH_TRY(take(r->mem, size[FTH_IMAGES_C], &r->channel, err));
    s->wells =
        choose(r, opt->wells, "wells", size[FTH_IMAGES_P], position_name, r->position, &problems);
    s->c = choose(r, opt->channels, "channels", size[FTH_IMAGES_C], channel_name, r->channel,
                  &problems);
    r->times = opt->times;
    s->t = fo_range_count(&r->times, size[FTH_IMAGES_T]);
    if (r->times.first >= size[FTH_IMAGES_T] || r->times.end > size[FTH_IMAGES_T])
        fo_problems_add(&problems, false, NULL, "--times: there are %lld time points",
                        (long long)size[FTH_IMAGES_T]);
    return fo_problems_end(&problems, err);
}

/* ---- what is known about it ---- */

/* Names are those of files: two fields of one well are told apart by their positions. */
static fth_status name_well(const raw *r, fo_series *s, int64_t w, fth_err *err)
{
    const char *own = position_name(r, r->position[w]);
    char name[200];
    bool again = !*own;
    for (int64_t k = 0; k < s->wells; k++)
        again = again || (k != w && strcmp(own, position_name(r, r->position[k])) == 0);
    if (again)
        snprintf(name, sizeof name, "%.160s%sp%03lld", own, *own ? "_" : "",
                 (long long)r->position[w]);
    else
        snprintf(name, sizeof name, "%.199s", own);
    return fth_texts_add(s->well, name, strlen(name), err);
}

static fth_status describe(raw *r, fo_series *s, const fth_images_info *info, fth_err *err)
{
    FTH_TRY(fo_series_prepare(s, err));
    for (int64_t w = 0; w < s->wells; w++) {
        FTH_TRY(name_well(r, s, w, err));
        for (int64_t t = 0; t < s->t; t++)
            for (int64_t z = s->z - 1; z >= 0; z--) { /* the time of the first that is there */
                const fth_images_frame f = fth_images_get_frame(
                    r->images, r->times.first + t * r->times.step, r->position[w], z);
                if (!f.present) s->missing += s->c;
                if (f.present && isfinite(f.time_ms)) s->time_s[w * s->t + t] = f.time_ms / 1000;
            }
    }
    for (int64_t c = 0; c < s->c; c++) {
        const char *name = channel_name(r, r->channel[c]);
        FTH_TRY(fth_texts_add(s->channel, name, strlen(name), err));
    }
    r->names = NULL; /* no longer ours */
    s->period_s = info->period_ms / 1000 * (double)r->times.step;
    fo_series_finish(s);
    return FTH_OK;
}

static void make_source(raw *r, fo_series *s)
{
    const fth_source *f = &r->source;
    s->source = (fth_source){.kind = "stacks",
                             .self = r,
                             .dtype = s->dtype,
                             .n_axes = 3,
                             .size = {s->wells * s->t * s->z * s->c, s->y, s->x},
                             .read = read,
                             .libraries = f->libraries,
                             .billed_bytes = f->billed_bytes,
                             .concurrent = f->concurrent,
                             .thread_bytes = f->thread_bytes,
                             .part = {s->c, f->part[FTH_IMAGES_Y], f->part[FTH_IMAGES_X]}};
}

static fth_status open_all(raw *r, fo_series *s, const char *path, const fo_series_options *opt,
                           fth_err *err)
{
    r->names = opt->positions;
    FTH_TRY(fth_images_open(&r->images, r->mem, path, &opt->images, err));
    const fth_images_info *info = fth_images_get_info(r->images);
    FTH_TRY(fth_images_source(r->images, &r->source, err));
    s->z = info->size[FTH_IMAGES_Z];
    s->y = info->size[FTH_IMAGES_Y];
    s->x = info->size[FTH_IMAGES_X];
    s->has_z = strchr(info->axes, 'z') != NULL;
    s->dtype = info->dtype;
    s->um_per_px = opt->um_per_px > 0 ? opt->um_per_px : info->um_per_px;
    s->z_step_um = opt->z_step_um > 0 ? opt->z_step_um : info->z_step_um;
    s->files = 1;
    FTH_TRY(select_all(r, s, info, opt, err));
    FTH_TRY(describe(r, s, info, err));
    make_source(r, s);
    return FTH_OK;
}

fth_status fo_series_open_file(fo_series *s, fth_mem *mem, const char *path,
                               const fo_series_options *opt, fth_err *err)
{
    void *block = NULL;
    *s = (fo_series){0};
    FTH_TRY(fth_mem_take(mem, FTH_MEM_POOL, sizeof(raw), "series", &block, err));
    raw *r = block;
    *r = (raw){.mem = mem, .series = s};
    *s = (fo_series){.mem = mem, .self = r, .end = end};
    snprintf(s->path, sizeof s->path, "%s", path);
    const fth_status status = open_all(r, s, path, opt, err);
    if (status != FTH_OK) fo_series_close(s);
    return status;
}
