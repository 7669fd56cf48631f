/* master.c - see master.h. */
#include "master.h"

#include "../linear/median.h"

#include <inttypes.h>
#include <math.h>

/* Of one coordinate of one tile; *n: samples that have it. */
static double median_of(const fo_tile_place *sample, int tiles, int tile, int64_t n_samples, bool x,
                        double *work, int64_t *n)
{
    *n = 0;
    for (int64_t s = 0; s < n_samples; s++) {
        const fo_tile_place *p = &sample[s * tiles + tile];
        if (p->source == FO_PLACE_ALIGNED) work[(*n)++] = x ? p->x : p->y;
    }
    return *n ? fo_median(work, *n) : (double)NAN;
}

void fo_master_make(fo_tile_place *master, int n, const fo_tile_place *sample, int64_t n_samples,
                    double *work)
{
    for (int i = 0; i < n; i++) {
        int64_t found;
        master[i] = (fo_tile_place){.y = median_of(sample, n, i, n_samples, false, work, &found),
                                    .x = median_of(sample, n, i, n_samples, true, work, &found),
                                    .score = (double)NAN};
        master[i].source = found ? FO_PLACE_MASTER : FO_PLACE_NONE;
    }
}

fth_status fo_master_save(const fo_tile_place *master, const fo_tiles *t, const char *const *name,
                          fth_mem *mem, const char *path, fth_err *err)
{
    fth_json_writer w;
    char key[16];
    fth_json_begin(&w, mem, true);
    fth_json_open(&w, NULL, '{');
    fth_json_open(&w, "metadata", '{');
    fth_json_open_row(&w, "shape", '[');
    fth_json_int(&w, NULL, t->rows);
    fth_json_int(&w, NULL, t->columns);
    fth_json_close(&w);
    fth_json_int(&w, "size", fo_tiles_count(t));
    fth_json_open_row(&w, "tile_shape", '[');
    fth_json_int(&w, NULL, t->y);
    fth_json_int(&w, NULL, t->x);
    fth_json_close(&w);
    fth_json_close(&w);
    fth_json_open(&w, "coords", '{');
    for (int i = 0; i < fo_tiles_count(t); i++) {
        if (master[i].source == FO_PLACE_NONE) continue;
        snprintf(key, sizeof key, "%d", i);
        fth_json_open_row(&w, key, '[');
        fth_json_real(&w, NULL, master[i].y);
        fth_json_real(&w, NULL, master[i].x);
        fth_json_close(&w);
    }
    fth_json_close(&w);
    fth_json_open(&w, "filenames", '{');
    for (int i = 0; i < fo_tiles_count(t); i++) {
        snprintf(key, sizeof key, "%d", i);
        fth_json_text(&w, key, name[i]);
    }
    fth_json_close(&w);
    fth_json_close(&w);
    return fth_json_save(&w, path, err);
}

static fth_status check(const fth_json_value *meta, const fo_tiles *t, const char *path,
                        fth_err *err)
{
    const fth_json_value *shape = fth_json_get(meta, "shape"),
                         *size = fth_json_get(meta, "tile_shape");
    const int64_t found[4] = {fth_json_get_int(fth_json_at(shape, 0), NULL, -1),
                              fth_json_get_int(fth_json_at(shape, 1), NULL, -1),
                              fth_json_get_int(fth_json_at(size, 0), NULL, -1),
                              fth_json_get_int(fth_json_at(size, 1), NULL, -1)};
    if (found[0] == t->rows && found[1] == t->columns && found[2] == t->y && found[3] == t->x)
        return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                    "%s: places of %" PRId64 " x %" PRId64 " tiles of %" PRId64 " x %" PRId64
                    " pixels; expected %d x %d of %" PRId64 " x %" PRId64
                    "; remove the file, and it is created again",
                    path, found[0], found[1], found[2], found[3], t->rows, t->columns, t->y, t->x);
}

static fth_status read_places(fo_tile_place *master, const fth_json_value *coords, int n,
                              const char *path, fth_err *err)
{
    for (int i = 0; i < n; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        const fth_json_value *p = fth_json_get(coords, key);
        const double y = fth_json_get_real(fth_json_at(p, 0), NULL, (double)NAN);
        const double x = fth_json_get_real(fth_json_at(p, 1), NULL, (double)NAN);
        master[i] =
            (fo_tile_place){.y = y, .x = x, .score = (double)NAN, .source = FO_PLACE_MASTER};
        if (!p)
            master[i].source = FO_PLACE_NONE;
        else if (!(y >= 0 && y < 1e6 && x >= 0 && x < 1e6))
            return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                            "%s: coords of tile %d are not two non-negative numbers", path, i);
    }
    return FTH_OK;
}

fth_status fo_master_load(fo_tile_place *master, const fo_tiles *tiles, fth_mem *mem,
                          const char *path, fth_err *err)
{
    fth_json *doc = NULL;
    FTH_TRY(fth_json_load(&doc, mem, path, err));
    const fth_json_value *root = fth_json_root(doc);
    fth_status s = check(fth_json_get(root, "metadata"), tiles, path, err);
    if (s == FTH_OK)
        s = read_places(master, fth_json_get(root, "coords"), fo_tiles_count(tiles), path, err);
    fth_json_destroy(doc);
    return s;
}
