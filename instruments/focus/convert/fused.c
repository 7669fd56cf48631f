/* fused.c - a folder of fused images as a series; see series.h.
 *
 * Every image is opened when it is read, and its header before: differing sizes are reported
 * together, before anything is written. TIFF readers take memory when they are opened; it is
 * reserved in advance, and they read one at a time, so the plan stays exact.
 */
#include "../experiment/image_name.h"
#include "../input/problems.h"
#include "series.h"
#include "times.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_CHANNELS = 64, CHANNEL_NAME = 64, DEEPEST = 2 };

typedef struct fused {
    fth_mem *mem;
    fth_mem *readers; /* memory of open images, which is not in the ledger of `mem` */
    void *reserved;   /* the same amount, reserved in `mem` */
    fth_texts *paths;
    const fo_series *series;
    int64_t *path_of; /* [well][t][c]: number of the path; -1: there is no picture */
    int64_t *t;       /* time points, by number */
    int well[FO_WELLS];
    char channel[MOST_CHANNELS][CHANNEL_NAME];
} fused;

static void end(void *self)
{
    fused *f = self;
    fth_texts_free(f->paths);
    (void)fth_mem_destroy(f->readers, NULL);
    fth_mem_release(f->mem, f->reserved, NULL);
    fth_mem_release(f->mem, f->path_of, NULL);
    fth_mem_release(f->mem, f->t, NULL);
    fth_mem_release(f->mem, f, NULL);
}

/* ---- pixels ---- */

static fth_status read_picture(const fused *f, const char *path, const int64_t *lo,
                               const int64_t *n, void *dst, fth_err *err)
{
    const fo_series *s = f->series;
    fth_images *images = NULL;
    fth_source source;
    FTH_TRY(fth_images_open(&images, f->readers, path, NULL, err));
    const fth_images_info *info = fth_images_get_info(images);
    fth_status status = FTH_OK;
    if (info->dtype != s->dtype || info->size[FTH_IMAGES_Y] != s->y ||
        info->size[FTH_IMAGES_X] != s->x)
        status = FTH_FAIL(err, FTH_E_FILE_READ, "%s: it has changed since it was opened", path);
    if (status == FTH_OK) status = fth_images_source(images, &source, err);
    fth_images_close(images);
    FTH_TRY(status);
    const int64_t from[] = {0, 0, 0, 0, lo[1], lo[2]}, count[] = {1, 1, 1, 1, n[1], n[2]};
    status = source.read(source.self, from, count, dst, err);
    fth_source_close(&source);
    return status;
}

static fth_status read(void *self, const int64_t *lo, const int64_t *n, void *dst, fth_err *err)
{
    const fused *f = self;
    const int64_t plane = n[1] * n[2] * fth_dtype_size(f->series->dtype);
    char *to = dst;
    for (int64_t i = lo[0]; i < lo[0] + n[0]; i++, to += plane) {
        const int64_t path = f->path_of[i]; /* z is 1: the order is that of planes */
        if (path < 0)
            memset(to, 0, (size_t)plane);
        else
            FTH_TRY(read_picture(f, fth_texts_get(f->paths, path), lo, n, to, err));
    }
    return FTH_OK;
}

/* ---- the list of images ---- */

static bool wants(const char *name, const fo_series_options *opt)
{
    char channel[CHANNEL_NAME], well_name[FO_WELL_NAME];
    int well;
    int64_t t;
    if (!fo_image_name_parse(name, &well, &t)) return false;
    fo_image_name_channel(name, channel, sizeof channel);
    const int64_t number = strncmp(channel, "ch", 2) == 0 ? strtol(channel + 2, NULL, 10) : -1;
    const fo_range *r = &opt->times;
    return (!*opt->wells || fo_list_find(opt->wells, fo_well_name(well, well_name), -1) >= 0) &&
           (!*opt->channels || fo_list_find(opt->channels, channel, number) >= 0) &&
           t >= r->first && (r->end < 0 || t < r->end) && (t - r->first) % r->step == 0;
}

static fth_status walk(fused *f, const char *folder, int depth, const fo_series_options *opt,
                       fth_err *err)
{
    fth_texts *names = NULL;
    FTH_TRY(fth_folder_list(&names, f->mem, folder, err));
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < fth_texts_count(names); i++) {
        char path[FTH_PATH];
        const char *name = fth_texts_get(names, i);
        if (name[0] == '.') continue;
        s = fth_path_join(path, folder, name, err);
        if (s == FTH_OK && wants(name, opt)) s = fth_texts_add(f->paths, path, strlen(path), err);
        if (s == FTH_OK && depth < DEEPEST && fth_path_kind_of(path) == FTH_PATH_FOLDER)
            s = walk(f, path, depth + 1, opt, err);
    }
    fth_texts_free(names);
    return s;
}

static int64_t find_channel(fused *f, int64_t *n, const char *name)
{
    for (int64_t c = 0; c < *n; c++)
        if (strcmp(f->channel[c], name) == 0) return c;
    if (*n == MOST_CHANNELS) return -1;
    snprintf(f->channel[*n], CHANNEL_NAME, "%s", name);
    return (*n)++;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static int by_number(const void *a, const void *b)
{
    const int64_t p = *(const int64_t *)a, q = *(const int64_t *)b;
    return (p > q) - (p < q);
}

/* Wells, time points and channels of all names, each once and in order. */
static fth_status find_axes(fused *f, fo_series *s, const char *folder, fth_err *err)
{
    bool there[FO_WELLS] = {false};
    const int64_t n = fth_texts_count(f->paths);
    void *block = NULL;
    FTH_TRY(fth_mem_take(f->mem, FTH_MEM_POOL, (uint64_t)(n + 1) * sizeof *f->t, "time points",
                         &block, err));
    f->t = block;
    for (int64_t i = 0; i < n; i++) {
        char channel[CHANNEL_NAME];
        int well;
        const char *name = fth_path_name(fth_texts_get(f->paths, i));
        (void)fo_image_name_parse(name, &well, &f->t[i]);
        fo_image_name_channel(name, channel, sizeof channel);
        there[well] = true;
        if (find_channel(f, &s->c, channel) < 0)
            return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: more than %d channels", folder,
                            (int)MOST_CHANNELS);
    }
    qsort(f->channel, (size_t)s->c, sizeof f->channel[0], by_name);
    qsort(f->t, (size_t)n, sizeof *f->t, by_number);
    for (int64_t i = 0; i < n; i++)
        if (i == 0 || f->t[i] != f->t[s->t - 1]) f->t[s->t++] = f->t[i];
    for (int w = 0; w < FO_WELLS; w++)
        if (there[w]) f->well[s->wells++] = w;
    s->z = 1;
    return FTH_OK;
}

static int64_t place_of(const fused *f, const fo_series *s, const char *name)
{
    char channel[CHANNEL_NAME];
    int64_t w = 0, c = 0, number;
    int well;
    (void)fo_image_name_parse(name, &well, &number);
    fo_image_name_channel(name, channel, sizeof channel);
    while (f->well[w] != well) w++;
    while (strcmp(f->channel[c], channel) != 0) c++;
    const int64_t *t = bsearch(&number, f->t, (size_t)s->t, sizeof number, by_number);
    return (w * s->t + (t - f->t)) * s->c + c;
}

static fth_status list_pictures(fused *f, fo_series *s, fo_problems *problems, fth_err *err)
{
    const int64_t all = s->wells * s->t * s->c, n = fth_texts_count(f->paths);
    void *block = NULL;
    FTH_TRY(fth_mem_take(f->mem, FTH_MEM_POOL, (uint64_t)(all + 1) * sizeof *f->path_of, "pictures",
                         &block, err));
    f->path_of = block;
    for (int64_t i = 0; i < all; i++) f->path_of[i] = -1;
    for (int64_t i = 0; i < n; i++) {
        const char *path = fth_texts_get(f->paths, i);
        int64_t *at = &f->path_of[place_of(f, s, fth_path_name(path))];
        if (*at >= 0)
            fo_problems_add(problems, true, "move one of them away",
                            "%.200s and %.200s are the same image", fth_texts_get(f->paths, *at),
                            path);
        *at = i;
    }
    s->files = n;
    s->missing = all - n;
    return FTH_OK;
}

/* ---- their headers ---- */

/* Common properties of all images. */
typedef struct readers {
    uint32_t libraries;
    uint64_t most; /* bytes that one takes when it is opened */
    uint64_t thread_bytes;
} readers;

static void compare(fo_series *s, const char *path, const char *first, const fth_images_info *info,
                    fo_problems *problems)
{
    const int64_t *size = info->size;
    if (size[FTH_IMAGES_T] * size[FTH_IMAGES_P] * size[FTH_IMAGES_Z] * size[FTH_IMAGES_C] != 1)
        fo_problems_add(problems, true, NULL, "%.200s: expected one grey image, found axes %s",
                        path, info->axes);
    if (path == first) {
        s->y = size[FTH_IMAGES_Y];
        s->x = size[FTH_IMAGES_X];
        s->dtype = info->dtype;
        s->um_per_px = info->um_per_px;
    }
    if (size[FTH_IMAGES_Y] != s->y || size[FTH_IMAGES_X] != s->x || info->dtype != s->dtype)
        fo_problems_add(problems, true, NULL,
                        "%.200s: expected y=%lld x=%lld %s as in %.200s, found y=%lld x=%lld %s",
                        path, (long long)s->y, (long long)s->x, fth_dtype_name(s->dtype), first,
                        (long long)size[FTH_IMAGES_Y], (long long)size[FTH_IMAGES_X],
                        fth_dtype_name(info->dtype));
}

static fth_status look_at(fused *f, fo_series *s, readers *all, fo_problems *problems)
{
    const char *first = fth_texts_get(f->paths, 0);
    for (int64_t i = 0; i < fth_texts_count(f->paths); i++) {
        const char *path = fth_texts_get(f->paths, i);
        fth_images *images = NULL;
        fth_source source = {0};
        fth_err found = {0};
        fth_status status = fth_images_open(&images, f->readers, path, NULL, &found);
        if (status == FTH_OK) {
            compare(s, path, first, fth_images_get_info(images), problems);
            status = fth_images_source(images, &source, &found);
        }
        if (status != FTH_OK) fo_problems_take(problems, &found);
        fth_mem_stats held;
        fth_mem_get_stats(f->readers, &held);
        if (held.used_bytes > all->most) all->most = held.used_bytes;
        if (source.thread_bytes > all->thread_bytes) all->thread_bytes = source.thread_bytes;
        all->libraries |= source.libraries;
        fth_source_close(&source);
        fth_images_close(images);
        if (status == FTH_E_NOMEM || status == FTH_E_BUDGET) return status;
    }
    return FTH_OK;
}

/* Readers have a ledger of their own; the same amount is reserved in ours. */
static fth_status open_readers(fused *f, fth_err *err)
{
    fth_mem_options opt;
    fth_mem_stats ours;
    fth_mem_get_stats(f->mem, &ours);
    fth_mem_options_default(&opt);
    opt.budget_bytes = ours.budget_bytes / 4;
    return fth_mem_create(&f->readers, &opt, err);
}

static fth_status describe(fused *f, fo_series *s, const fo_series_options *opt, fth_err *err)
{
    FTH_TRY(fo_series_prepare(s, err));
    for (int64_t w = 0; w < s->wells; w++) {
        char name[FO_WELL_NAME];
        fo_well_name(f->well[w], name);
        FTH_TRY(fth_texts_add(s->well, name, strlen(name), err));
    }
    for (int64_t c = 0; c < s->c; c++)
        FTH_TRY(fth_texts_add(s->channel, f->channel[c], strlen(f->channel[c]), err));
    if (opt->table && fth_path_exists(opt->table)) FTH_TRY(fo_times_read(s, f->t, opt->table, err));
    if (opt->um_per_px > 0) s->um_per_px = opt->um_per_px;
    fo_series_finish(s);
    return FTH_OK;
}

static fth_status open_all(fused *f, fo_series *s, const char *folder, const fo_series_options *opt,
                           fth_err *err)
{
    fo_problems problems = {0};
    readers all = {0};
    FTH_TRY(fth_texts_create(&f->paths, f->mem, err));
    FTH_TRY(walk(f, folder, 0, opt, err));
    if (fth_texts_count(f->paths) == 0)
        return FTH_FAIL(err, FTH_E_FILE_KEY,
                        "%s: no images such as A01_t0000_ch00_stitch.jpg match; "
                        "'fathom focus run' creates them",
                        folder);
    FTH_TRY(find_axes(f, s, folder, err));
    FTH_TRY(list_pictures(f, s, &problems, err));
    FTH_TRY(open_readers(f, err));
    const fth_status status = look_at(f, s, &all, &problems);
    if (status != FTH_OK) return FTH_FAIL(err, status, "%s: no memory to list its images", folder);
    FTH_TRY(fo_problems_end(&problems, err));
    if (all.most > 0)
        FTH_TRY(fth_mem_take(f->mem, FTH_MEM_ANY, all.most, "a picture", &f->reserved, err));
    s->source = (fth_source){.kind = "pictures",
                             .self = f,
                             .dtype = s->dtype,
                             .n_axes = 3,
                             .size = {s->wells * s->t * s->c, s->y, s->x},
                             .read = read,
                             .libraries = all.libraries,
                             .billed_bytes = all.most,
                             .thread_bytes = all.thread_bytes,
                             .concurrent = all.most == 0,
                             .part = {1, s->y, s->x}};
    return describe(f, s, opt, err);
}

fth_status fo_series_open_folder(fo_series *s, fth_mem *mem, const char *folder,
                                 const fo_series_options *opt, fth_err *err)
{
    void *block = NULL;
    *s = (fo_series){0};
    FTH_TRY(fth_mem_take(mem, FTH_MEM_POOL, sizeof(fused), "series", &block, err));
    fused *f = memset(block, 0, sizeof *f);
    f->mem = mem;
    f->series = s;
    *s = (fo_series){.mem = mem, .self = f, .end = end};
    snprintf(s->path, sizeof s->path, "%s", folder);
    const fth_status status = open_all(f, s, folder, opt, err);
    if (status != FTH_OK) fo_series_close(s);
    return status;
}
