/* target.c - see target.h.
 *
 * A well is opened by its first plane and ended by its last, so that few are open at once. Any
 * thread may write any plane: each has its place in the file.
 */
#include "target.h"

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>

/* A well that is being written. */
typedef struct part {
    fth_sink sink;
    int64_t left; /* pixels that have not come */
    bool open;
} part;

struct fo_target {
    fth_mem *mem;
    const fo_series *series;
    fo_target_options opt;
    char path[FTH_PATH];
    const char **channel; /* names, NULL where no channel has one */
    const char **well;
    fth_ngff_plate *plate; /* NULL: an image alone, or TIFF */
    fth_file_set *files;   /* NULL: Zarr */
    fth_hold *hold;        /* on the folder that temporary files are in */
    part *part;            /* [well] */
    bool made_folder;
    pthread_mutex_t lock;
};

static bool ends_with(const char *text, const char *ending)
{
    const size_t n = strlen(text), m = strlen(ending);
    return n > m && strcasecmp(text + n - m, ending) == 0;
}

fth_status fo_target_kind_of(const char *path, fo_target_kind *out, fth_err *err)
{
    char name[FTH_PATH];
    size_t n = strlen(path);
    const bool slash = n > 0 && path[n - 1] == '/';
    while (n > 1 && path[n - 1] == '/') n--;
    snprintf(name, sizeof name, "%.*s", (int)n, path);
    *out = FO_TO_FOLDER;
    if (ends_with(name, ".zarr"))
        *out = FO_TO_ZARR;
    else if (!slash && (ends_with(name, ".ome.tif") || ends_with(name, ".ome.tiff")))
        *out = FO_TO_TIFF;
    else if (!slash && fth_path_kind_of(name) != FTH_PATH_FOLDER) {
        FTH_FAIL(err, FTH_E_COMMAND,
                 "-o: expected OUT.zarr, OUT.ome.tif or FOLDER/, found '%.200s'", path);
        fth_err_hint(err, "end it with a slash to write a file for each well into a folder");
        return FTH_E_COMMAND;
    }
    return FTH_OK;
}

/* As a word of a file's name. */
static void file_word(const char *name, char *word, size_t bytes)
{
    snprintf(word, bytes, "%.100s", name);
    for (char *c = word; *c; c++)
        if (*c == '/' || *c == ' ') *c = '_';
}

fth_status fo_target_path(const fo_series *s, const fo_target_options *opt, int64_t well,
                          char path[FTH_PATH], fth_err *err)
{
    char word[120], file[140];
    if (opt->kind != FO_TO_FOLDER) {
        snprintf(path, FTH_PATH, "%s", opt->path);
        return FTH_OK;
    }
    file_word(fth_texts_get(s->well, well), word, sizeof word);
    if (s->fields > 1)
        snprintf(file, sizeof file, "%s_p%04d.ome.tif", word, (int)(well % s->fields));
    else
        snprintf(file, sizeof file, "%s.ome.tif", word);
    return fth_path_join(path, opt->path, file, err);
}

/* ---- how much ---- */

/* A smaller copy has half of each side, rounded up: at most so many levels have pixels. */
static int64_t pixels_of_levels(int64_t y, int64_t x, int levels)
{
    int64_t sum = 0;
    for (int i = 0; i < levels; i++, y = (y + 1) / 2, x = (x + 1) / 2) sum += y * x;
    return sum;
}

/* Files and folders of a Zarr: a chunk, the folder of its row, and those of its t, c and z; of each
 * level and well what describes them. */
static int64_t entries_of(const fo_series *s, const fo_target_options *opt)
{
    const int64_t planes = s->wells * s->t * s->z * s->c, tile = opt->tile,
                  chunks = tile > 0 ? ((s->y + tile - 1) / tile) * ((s->x + tile - 1) / tile) : 1;
    return planes * opt->levels * (2 * chunks + 3) + s->wells * (4 * opt->levels + 6) + 16;
}

/* Planes with camera noise compress badly: 0.6 of the bytes is usual. */
fo_amount fo_target_amount(const fo_series *s, const fo_target_options *opt)
{
    enum {
        HEAD = 512,
        BLOCK = 4096
    }; /* of a page of a TIFF; what a file or folder does not fill */
    const int64_t planes = s->wells * s->t * s->z * s->c, item = fth_dtype_size(s->dtype);
    if (opt->kind != FO_TO_ZARR) {
        const uint64_t all =
            (uint64_t)(planes * (s->y * s->x * item + HEAD) + (s->wells + 1) * BLOCK);
        return (fo_amount){all, all};
    }
    const uint64_t raw = (uint64_t)(planes * pixels_of_levels(s->y, s->x, opt->levels) * item),
                   rest = (uint64_t)(entries_of(s, opt) * BLOCK);
    if (opt->packing == FTH_ZARR_PLAIN) return (fo_amount){raw, raw + rest};
    return (fo_amount){raw / 10 * 6, raw + raw / 100 + rest};
}

/* ---- opening ---- */

/* Pointers to n texts; none where all are empty. */
static fth_status point_to(fth_mem *mem, const fth_texts *texts, const char ***out, fth_err *err)
{
    const int64_t n = fth_texts_count(texts);
    void *block = NULL;
    bool any = false;
    for (int64_t i = 0; i < n; i++) any = any || fth_texts_get(texts, i)[0];
    if (!any) return FTH_OK;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_POOL, (uint64_t)n * sizeof **out, "names", &block, err));
    *out = block;
    for (int64_t i = 0; i < n; i++) (*out)[i] = fth_texts_get(texts, i);
    return FTH_OK;
}

static fth_ngff_image image_of(const fo_target *t)
{
    const fo_series *s = t->series;
    return (fth_ngff_image){.version = t->opt.version,
                            .dtype = s->dtype,
                            .t = s->t,
                            .c = s->c,
                            .z = s->has_z ? s->z : 0,
                            .y = s->y,
                            .x = s->x,
                            .tile = t->opt.tile,
                            .levels = t->opt.levels,
                            .packing = t->opt.packing,
                            .um_per_px = s->um_per_px,
                            .z_step_um = s->z_step_um,
                            .period_ms = s->period_s * 1000,
                            .name = t->opt.name,
                            .channel = t->channel,
                            .planned = t->opt.only_plan};
}

static fth_status open_tiff(fo_target *t, int64_t well, fth_sink *out, fth_err *err)
{
    const fo_series *s = t->series;
    const double *time = s->time_s + well * s->t;
    bool known = true;
    for (int64_t i = 0; i < s->t; i++) known = known && isfinite(time[i]);
    char path[FTH_PATH];
    const char *temp = NULL;
    fth_tiff_stack stack = {.flavour = FTH_TIFF_OME,
                            .dtype = s->dtype,
                            .axes = s->has_z ? "tzcyx" : "tcyx",
                            .um_per_px = s->um_per_px,
                            .z_step_um = s->z_step_um,
                            .period_s = s->period_s,
                            .time_s = known ? time : NULL,
                            .channels = t->channel,
                            .name = fth_texts_get(s->well, well)};
    const int64_t size[] = {s->t, s->z, s->c, s->y, s->x};
    for (int a = 0, k = 0; a < 5; a++)
        if (a != 1 || s->has_z) stack.size[k++] = size[a];
    FTH_TRY(fo_target_path(s, &t->opt, well, path, err));
    FTH_TRY(fth_file_set_add(t->files, path, &temp, err));
    return fth_tiff_create(out, t->mem, temp, &stack, err);
}

static fth_status open_part(fo_target *t, int64_t well, fth_err *err)
{
    part *p = &t->part[well];
    if (p->open) return FTH_OK;
    if (t->files)
        FTH_TRY(open_tiff(t, well, &p->sink, err));
    else if (t->plate)
        FTH_TRY(fth_ngff_plate_sink(t->plate, well / t->series->fields, well % t->series->fields,
                                    &p->sink, err));
    p->open = true;
    return FTH_OK;
}

static fth_status open_zarr(fo_target *t, fth_err *err)
{
    const fo_series *s = t->series;
    const fth_ngff_image image = image_of(t);
    if (!s->is_plate) {
        FTH_TRY(fth_ngff_create(&t->part[0].sink, t->mem, t->path, &image, err));
        t->part[0].open = true;
        return FTH_OK;
    }
    const int64_t wells = s->wells / s->fields;
    for (int64_t i = 0; i < wells; i++) t->well[i] = t->well[i * s->fields];
    return fth_ngff_plate_create(&t->plate, t->mem, t->path, &image, t->well, wells, s->fields,
                                 err);
}

static fth_status open_files(fo_target *t, fth_err *err)
{
    if (t->opt.only_plan) return FTH_OK;
    return fth_file_set_create(&t->files, t->mem, err);
}

/* Removes what killed processes left of the same output; claims its own until the end. */
static fth_status clean_up(fo_target *t, fth_err *err)
{
    char path[FTH_PATH], folder[FTH_PATH];
    int64_t count;
    if (t->opt.only_plan) return FTH_OK;
    if (t->opt.kind == FO_TO_FOLDER && !fth_path_exists(t->path)) {
        FTH_TRY(fth_folder_make_all(t->mem, t->path, err));
        t->made_folder = true;
    }
    for (int64_t w = 0; w < (t->opt.kind == FO_TO_FOLDER ? t->series->wells : 1); w++) {
        FTH_TRY(fo_target_path(t->series, &t->opt, w, path, err));
        FTH_TRY(fth_remains_remove(t->mem, path, &count, err));
    }
    while (strlen(path) > 1 && path[strlen(path) - 1] == '/') path[strlen(path) - 1] = '\0';
    FTH_TRY(fth_path_parent(folder, path, err));
    return fth_hold_create(&t->hold, t->mem, folder, err);
}

fth_status fo_target_create(fo_target **out, const fo_series *series, const fo_target_options *opt,
                            fth_err *err)
{
    fth_mem *mem = series->mem;
    void *block = NULL;
    *out = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_POOL, sizeof(fo_target), "target", &block, err));
    fo_target *t = memset(block, 0, sizeof *t);
    t->mem = mem;
    t->series = series;
    t->opt = *opt;
    snprintf(t->path, sizeof t->path, "%s", opt->path);
    pthread_mutex_init(&t->lock, NULL);
    const uint64_t bytes = (uint64_t)series->wells * sizeof(part);
    fth_status s = fth_mem_take(mem, FTH_MEM_POOL, bytes, "wells", &block, err);
    if (s == FTH_OK) {
        t->part = memset(block, 0, bytes);
        for (int64_t w = 0; w < series->wells; w++)
            t->part[w].left = series->t * series->z * series->c * series->y * series->x;
        s = point_to(mem, series->channel, &t->channel, err);
    }
    if (s == FTH_OK) s = point_to(mem, series->well, &t->well, err);
    if (s == FTH_OK) s = clean_up(t, err);
    if (s == FTH_OK) s = opt->kind == FO_TO_ZARR ? open_zarr(t, err) : open_files(t, err);
    if (s == FTH_OK)
        *out = t;
    else
        fo_target_destroy(t);
    return s;
}

void fo_target_destroy(fo_target *t)
{
    if (!t) return;
    for (int64_t w = 0; t->part && w < t->series->wells; w++)
        if (t->part[w].open) fth_sink_close(&t->part[w].sink);
    fth_ngff_plate_abandon(t->plate);
    fth_file_set_destroy(t->files);
    fth_hold_release(t->hold);
    if (t->made_folder) (void)fth_folder_remove(NULL, t->path, NULL); /* not committed */
    fth_mem_release(t->mem, t->part, NULL);
    fth_mem_release(t->mem, t->well, NULL);
    fth_mem_release(t->mem, t->channel, NULL);
    pthread_mutex_destroy(&t->lock);
    fth_mem_release(t->mem, t, NULL);
}

/* ---- writing ---- */

/* A part of one plane, into the file of its well. */
static fth_status write_plane(fo_target *t, const fo_place *at, const int64_t *lo, const int64_t *n,
                              const void *src, fth_err *err)
{
    const fo_series *s = t->series;
    part *p = &t->part[at->well];
    int64_t from[5] = {at->t}, count[5] = {1, 1, 1, 1, 1};
    int a = 1;
    if (t->files && s->has_z) from[a++] = at->z; /* a TIFF has t z c, an NGFF t c z */
    from[a++] = at->c;
    if (!t->files && s->has_z) from[a++] = at->z;
    from[a] = lo[1], count[a++] = n[1];
    from[a] = lo[2], count[a] = n[2];
    pthread_mutex_lock(&t->lock);
    fth_status status = open_part(t, at->well, err);
    pthread_mutex_unlock(&t->lock);
    if (status == FTH_OK) status = p->sink.write(p->sink.self, from, count, src, err);
    FTH_TRY(status);
    pthread_mutex_lock(&t->lock);
    const bool last = (p->left -= n[1] * n[2]) == 0 && (t->files || t->plate);
    pthread_mutex_unlock(&t->lock);
    if (!last) return FTH_OK;
    FTH_TRY(p->sink.commit(p->sink.self, err));
    fth_sink_close(&p->sink);
    p->open = false;
    return FTH_OK;
}

static fth_status write(void *self, const int64_t *lo, const int64_t *n, const void *src,
                        fth_err *err)
{
    fo_target *t = self;
    const char *from = src;
    const int64_t plane = n[1] * n[2] * fth_dtype_size(t->series->dtype);
    for (int64_t i = 0; i < n[0]; i++, from += plane) {
        const fo_place at = fo_series_place(t->series, lo[0] + i);
        FTH_TRY(write_plane(t, &at, lo, n, from, err));
    }
    return FTH_OK;
}

static fth_status commit(void *self, fth_err *err)
{
    fo_target *t = self;
    fth_status s = FTH_OK;
    if (t->files) {
        s = fth_file_set_commit(t->files, err);
        t->made_folder = t->made_folder && s != FTH_OK;
    } else if (t->plate) {
        fth_ngff_plate *plate = t->plate;
        t->plate = NULL; /* ended either way */
        s = fth_ngff_plate_commit(plate, err);
    } else {
        s = t->part[0].sink.commit(t->part[0].sink.self, err);
    }
    return s;
}

fth_sink fo_target_sink(fo_target *t)
{
    const fo_series *s = t->series;
    fth_sink sink = {.kind = t->opt.kind == FO_TO_ZARR ? "ome-ngff" : "ome-tiff",
                     .self = t,
                     .dtype = s->dtype,
                     .n_axes = 3,
                     .size = {s->wells * s->t * s->z * s->c, s->y, s->x},
                     .write = write,
                     .commit = commit,
                     .path = t->path,
                     .concurrent = t->opt.kind == FO_TO_ZARR,
                     .part = {1, s->y, s->x}};
    fth_sink one = {0}; /* what the files themselves need */
    if (t->plate && fth_ngff_plate_sink(t->plate, 0, 0, &one, NULL) == FTH_OK) {
        t->part[0].sink = one;
        t->part[0].open = true;
    }
    if (t->opt.kind == FO_TO_ZARR) one = t->part[0].sink;
    sink.libraries = one.libraries;
    sink.billed_bytes = one.billed_bytes;
    sink.thread_bytes = one.thread_bytes;
    return sink;
}
