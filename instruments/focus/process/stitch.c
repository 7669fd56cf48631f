/* stitch.c - see stitch.h and fo_work_stitch. */
#include "stitch.h"

#include "record.h"

#include <inttypes.h>
#include <string.h>

/* ---- names, for the mosaics ---- */

static int tiles_of(void *user, int64_t mosaic)
{
    const fo_work *w = user;
    return fo_job_tiles(&w->e, w->e.in.stack[w->first[mosaic]].p);
}

/* The stack of a tile; -1: the mosaic has a hole there. */
static int64_t stack_of(const fo_work *w, int64_t mosaic, int tile)
{
    const fo_input *in = &w->e.in;
    const int64_t end = mosaic + 1 < w->mosaics.n ? w->first[mosaic + 1] : in->n_stacks;
    for (int64_t i = w->first[mosaic]; i < end; i++)
        if (in->stack[i].b == tile) return in->stack[i].present > 0 ? i : -1;
    return -1;
}

static fth_status tile_path(void *user, int64_t mosaic, int tile, char path[FTH_PATH], fth_err *err)
{
    const fo_work *w = user;
    const int64_t stack = stack_of(w, mosaic, tile);
    path[0] = '\0';
    return stack < 0 ? FTH_OK : fo_job_path(&w->e, stack, FO_OUT_IMAGE, path, err);
}

static fth_status image_path(void *user, int64_t mosaic, char path[FTH_PATH], fth_err *err)
{
    const fo_work *w = user;
    return fo_job_mosaic_path(&w->e, w->first[mosaic], path, err);
}

static fth_status stack_path(void *user, int64_t mosaic, char path[FTH_PATH], fth_err *err)
{
    const fo_work *w = user;
    return fo_job_zstack_path(&w->e, w->first[mosaic], path, err);
}

static void label_of(void *user, int64_t mosaic, int *well, int64_t *t, char *name, size_t bytes)
{
    const fo_work *w = user;
    const int64_t stack = w->first[mosaic];
    *well = fo_job_well(&w->e, stack);
    *t = w->e.in.stack[stack].t;
    fo_job_mosaic_name(&w->e, stack, name, bytes);
}

/* A plane as bytes, the upper ones of 16 bits. It is read into the end of the buffer of reals, and
 * widened from the front: a value is written only after all before it were read. */
static fth_status read_plane(void *user, int64_t mosaic, int tile, int64_t z, float *to,
                             fth_err *err)
{
    fo_work *w = user;
    const fo_input *in = &w->e.in;
    fo_input_view view = {.input = &w->e.in};
    const fth_source source = fo_input_source(&view);
    const int64_t n = in->rows * in->columns, item = fth_dtype_size(in->dtype);
    const int64_t lo[] = {stack_of(w, mosaic, tile), z, 0, 0},
                  size[] = {1, 1, in->rows, in->columns};
    char *raw = (char *)to + n * ((int64_t)sizeof *to - item);
    FTH_TRY(source.read(source.self, lo, size, raw, err));
    for (int64_t i = 0; i < n; i++) {
        uint16_t v = 0;
        memcpy(&v, raw + i * item, (size_t)item);
        to[i] = (float)(item == 2 ? v >> 8 : v & 0xff);
    }
    return FTH_OK;
}

/* ---- how ---- */

static fo_mosaic_how how_of(const fo_work *w)
{
    const fth_config *cfg = w->cfg;
    const bool compat = fth_config_choice(cfg, "focus.compat") == 1;
    const fo_blend usual = compat ? FO_BLEND_NONE : FO_BLEND_LINEAR;
    return (fo_mosaic_how){.y = w->e.in.rows,
                           .x = w->e.in.columns,
                           .vertical = w->e.vertical,
                           .rows = w->e.grid_rows,
                           .columns = w->e.grid_columns,
                           .overlap = fth_config_real(cfg, "focus.overlap"),
                           .blend = fth_config_has(cfg, "focus.blend")
                                        ? (fo_blend)fth_config_choice(cfg, "focus.blend")
                                        : usual,
                           .gamma = compat,
                           .invert = !fth_config_has(cfg, "focus.polarity") ||
                                     strcmp(fth_config_text(cfg, "focus.polarity"), "invert") == 0,
                           .format = w->e.format,
                           .um_per_px = w->e.in.um_per_px,
                           .scalebar = fo_scalebar_of(cfg, w->e.in.um_per_px)};
}

static fth_status list_mosaics(fo_work *w, fth_err *err)
{
    const fo_input *in = &w->e.in;
    FTH_TRY(fth_mem_take(w->mem, FTH_MEM_POOL, (uint64_t)fo_job_rows(&w->e) * sizeof *w->first + 1,
                         "mosaics", (void **)&w->first, err));
    w->mosaics.n = 0;
    for (int64_t i = 0; i < in->n_stacks; i++)
        if (fo_job_has_row(&w->e, i)) w->first[w->mosaics.n++] = i;
    return FTH_OK;
}

/* The bar fits into the picture of every number of tiles. */
static fth_status check_bars(const fo_work *w, fth_err *err)
{
    const fo_mosaic_how how = how_of(w);
    for (int64_t i = 0; how.scalebar.um > 0 && i < w->mosaics.n; i++) {
        int64_t y, x;
        fo_mosaic_canvas(&how, fo_job_tiles(&w->e, w->e.in.stack[w->first[i]].p), &y, &x);
        FTH_TRY(fo_scalebar_check(&how.scalebar, y, x, err));
    }
    return FTH_OK;
}

fth_status fo_work_open_mosaics(fo_work *w, fth_err *err)
{
    uint64_t bytes;
    if (!fo_job_is_tiled(&w->e)) return FTH_OK;
    FTH_TRY(fth_path_join(w->master, w->e.place.tiles, "master_params.json", err));
    FTH_TRY(fth_path_join(w->places, w->e.place.run, "stitch.csv", err));
    const bool stacks = fth_config_bool(w->cfg, "focus.stitch_z");
    w->mosaics =
        (fo_mosaics){.ctx = w->ctx,
                     .stage = w->stage,
                     .how = how_of(w),
                     .names = {.tiles = tiles_of,
                               .tile = tile_path,
                               .image = image_path,
                               .label = label_of,
                               .stack = stacks ? stack_path : NULL,
                               .plane = read_plane,
                               .planes = w->e.in.planes,
                               .user = w},
                     .master = w->master,
                     .table = w->places,
                     .again = w->overwrite || fth_config_bool(w->cfg, "focus.overwrite_stitch"),
                     .none = fth_config_bool(w->cfg, "focus.metadata_only")};
    FTH_TRY(list_mosaics(w, err));
    FTH_TRY(check_bars(w, err));
    FTH_TRY(fo_mosaics_open(&w->mosaics, err));
    for (int64_t i = 0; i < w->mosaics.n; i++) /* images of a well that was another one */
        if (!w->mosaics.none && w->before.has_moved[fo_job_well(&w->e, w->first[i])])
            w->mosaics.mosaic[i].state = FO_WAITING;
    return fo_mosaics_plan(&w->mosaics, &bytes, err);
}

void fo_work_close_mosaics(fo_work *w)
{
    fo_mosaics_close(&w->mosaics);
    if (w->first) fth_mem_release(w->mem, w->first, NULL);
    w->first = NULL;
}

/* ---- doing it ---- */

/* Adds its time to that of the fusion, and takes the larger memory. */
static void account(fo_work *w)
{
    fth_run_report *r = &w->pipeline.report;
    const fo_mosaics *m = &w->mosaics;
    w->pipeline.stitch_s = m->seconds;
    if (m->planned_bytes > r->planned_bytes && !r->on_device) {
        r->planned_bytes = m->planned_bytes;
        r->ledger_bytes = m->peak_bytes;
    }
    r->kept = (w->pipeline.plans == 0 || r->kept) && m->peak_bytes <= m->planned_bytes;
    r->seconds += m->seconds;
}

fth_status fo_work_stitch(fo_work *w, fth_err *err)
{
    char marker[FTH_PATH];
    if (!fo_job_is_tiled(&w->e)) return FTH_OK;
    FTH_TRY(fo_work_claim(w, err));
    FTH_TRY(fth_path_join(marker, w->e.place.images, ".ff_complete", err));
    if (fo_mosaics_count(&w->mosaics, FO_WAITING) > 0)
        FTH_TRY(fth_path_remove(w->mem, marker, err));
    if (w->mosaics.names.stack) FTH_TRY(fth_folder_make_all(w->mem, w->e.place.zstacks, err));
    FTH_TRY(fth_folder_make_all(w->mem, w->e.place.images, err));
    FTH_TRY(fth_folder_make_all(w->mem, w->e.place.tiles, err));
    FTH_TRY(fth_folder_make_all(w->mem, w->e.place.run, err));
    const fth_status s = fo_mosaics_run(&w->mosaics, err);
    if (s != FTH_OK && s != FTH_E_JOB_FAILED) return s;
    account(w);
    fth_err *told = s == FTH_OK ? err : NULL;
    fth_status saved = fo_record_save(w, told);
    if (saved == FTH_OK && s == FTH_OK) saved = fo_work_mark(w, told);
    return s == FTH_OK ? saved : s;
}
