/* places.c - positions of tiles: stitch.csv, and master_params.json for those that cannot be
 * aligned; see mosaics.h. */
#include "../plate/well.h"
#include "../stitch/master.h"
#include "../stitch/place.h"
#include "mosaics.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- stitch.csv ---- */

enum { WELL, TIME, TILE, Y, X, SCORE, SOURCE, COLUMNS };

/* Whether a tile has a file. */
static bool is_there(const fo_mosaics *m, int64_t i, int tile)
{
    char path[FTH_PATH];
    return m->names.tile(m->names.user, i, tile, path, NULL) == FTH_OK && path[0];
}

static void add_row(fth_lines *t, const char *well, int64_t time, int tile, const fo_tile_place *p)
{
    fth_lines_add(t, "%s,%" PRId64 ",%d,", well, time, tile);
    fth_lines_real(t, p->y);
    fth_lines_add(t, ",");
    fth_lines_real(t, p->x);
    fth_lines_add(t, ",");
    if (!isnan(p->score)) fth_lines_real(t, p->score);
    fth_lines_add(t, ",%s\n", fo_place_source_names[p->source]);
}

fth_status fo_mosaics_save_places(const fo_mosaics *m, fth_err *err)
{
    fth_lines t;
    fth_lines_begin(&t, m->mem);
    fth_lines_add(&t, "well,t,tile,y,x,score,source\n");
    for (int64_t i = 0; i < m->n; i++) {
        const fo_mosaic *s = &m->mosaic[i];
        char word[FO_WELL_NAME], name[60];
        int64_t time;
        int well;
        if (!s->known) continue;
        m->names.label(m->names.user, i, &well, &time, name, sizeof name);
        for (int k = 0; k < s->tiles; k++)
            if (is_there(m, i, k))
                add_row(&t, fo_well_name(well, word), time, k, &m->place[s->place + k]);
    }
    return fth_lines_save(&t, m->table, err);
}

static bool parse_row(const fth_csv *c, int64_t row, fo_tile_place *p)
{
    const char *score = fth_csv_get(c, row, SCORE), *source = fth_csv_get(c, row, SOURCE);
    p->source = FO_PLACE_NONE;
    for (int k = 1; k < FO_PLACE_SOURCES; k++)
        if (strcmp(source, fo_place_source_names[k]) == 0) p->source = (fo_place_source)k;
    p->score = (double)NAN;
    return p->source != FO_PLACE_NONE && fth_real_parse(fth_csv_get(c, row, Y), &p->y) &&
           fth_real_parse(fth_csv_get(c, row, X), &p->x) && p->y >= 0 && p->x >= 0 && p->y < 1e6 &&
           p->x < 1e6 && (!*score || fth_real_parse(score, &p->score));
}

/* Rows of one mosaic, from `row` on: how many; whether they are those of all its tiles. */
static int64_t take_rows(fo_mosaics *m, int64_t i, const fth_csv *c, int64_t row)
{
    fo_mosaic *s = &m->mosaic[i];
    char word[FO_WELL_NAME], name[60];
    int64_t time, n = 0, number;
    int well, tile = 0;
    bool good = true;
    m->names.label(m->names.user, i, &well, &time, name, sizeof name);
    fo_well_name(well, word);
    for (; row + n < c->rows; n++) {
        if (strcmp(fth_csv_get(c, row + n, WELL), word) != 0 ||
            !fth_int_parse(fth_csv_get(c, row + n, TIME), &number) || number != time)
            break;
        while (tile < s->tiles && !is_there(m, i, tile)) tile++;
        good = good && tile < s->tiles && fth_int_parse(fth_csv_get(c, row + n, TILE), &number) &&
               number == tile && parse_row(c, row + n, &m->place[s->place + tile]);
        tile++;
    }
    while (tile < s->tiles && !is_there(m, i, tile)) tile++;
    s->known = good && n > 0 && tile == s->tiles;
    return n;
}

fth_status fo_mosaics_load_places(fo_mosaics *m, fth_err *err)
{
    fth_csv c;
    int64_t row = 1;
    if (!fth_path_exists(m->table)) return FTH_OK;
    FTH_TRY(fth_csv_read(&c, m->mem, m->table, err));
    for (int64_t i = 0; i < m->n && c.width == COLUMNS; i++) row += take_rows(m, i, &c, row);
    fth_csv_free(&c);
    return FTH_OK;
}

/* ---- the master ---- */

static fo_tiles grid_of(const fo_mosaics *m)
{
    return fo_mosaic_grid(&m->how, m->how.most_tiles);
}

bool fo_mosaics_has_master(const fo_mosaics *m)
{
    return !m->again && fth_path_exists(m->master);
}

fth_status fo_mosaics_load_master(fo_mosaics *m, fth_err *err)
{
    const fo_tiles grid = grid_of(m);
    return fo_master_load(m->usual, &grid, m->mem, m->master, err);
}

/* Mosaics with all tiles aligned. */
static bool is_whole(const fo_mosaics *m, const fo_mosaic *s)
{
    if (!s->sampled || s->tiles != m->how.most_tiles) return false;
    for (int k = 0; k < s->tiles; k++)
        if (m->place[s->place + k].source != FO_PLACE_ALIGNED) return false;
    return true;
}

static fth_status save_master(const fo_mosaics *m, fth_err *err)
{
    const fo_tiles grid = grid_of(m);
    const int n = m->how.most_tiles;
    char(*text)[24] = NULL;
    const char **name = NULL;
    FTH_TRY(fth_mem_take(m->mem, FTH_MEM_META, (uint64_t)n * sizeof *text, "names of tiles",
                         (void **)&text, err));
    fth_status s = fth_mem_take(m->mem, FTH_MEM_META, (uint64_t)n * sizeof *name, "names of tiles",
                                (void **)&name, err);
    for (int i = 0; s == FTH_OK && i < n; i++) {
        snprintf(text[i], sizeof *text, "im_p%04d.%s", i, m->how.format.ending);
        name[i] = text[i];
    }
    if (s == FTH_OK) s = fo_master_save(m->usual, &grid, name, m->mem, m->master, err);
    if (name) fth_mem_release(m->mem, (void *)name, NULL);
    fth_mem_release(m->mem, text, NULL);
    return s;
}

fth_status fo_mosaics_make_master(fo_mosaics *m, fth_err *err)
{
    const int n = m->how.most_tiles;
    int64_t count = 0;
    void *sample = NULL, *work = NULL;
    for (int64_t i = 0; i < m->n; i++) count += is_whole(m, &m->mosaic[i]);
    FTH_TRY(fth_mem_take(m->mem, FTH_MEM_META, (uint64_t)(count * n + 1) * sizeof(fo_tile_place),
                         "sample of places", &sample, err));
    fth_status s = fth_mem_take(m->mem, FTH_MEM_META, (uint64_t)(count + 1) * sizeof(double),
                                "median", &work, err);
    if (s == FTH_OK) {
        fo_tile_place *to = sample;
        for (int64_t i = 0; i < m->n; i++) {
            if (!is_whole(m, &m->mosaic[i])) continue;
            memcpy(to, m->place + m->mosaic[i].place, (size_t)n * sizeof *to);
            to += n;
        }
        fo_master_make(m->usual, n, sample, count, work);
        s = save_master(m, err);
    }
    if (work) fth_mem_release(m->mem, work, NULL);
    fth_mem_release(m->mem, sample, NULL);
    return s;
}

/* Whether all tiles were aligned, plausibly. */
static bool is_believed(const fo_mosaics *m, int64_t i)
{
    const fo_mosaic *s = &m->mosaic[i];
    const fo_tile_place *place = m->place + s->place;
    if (m->how.rows == 0) return fo_places_in_line(place, s->tiles, m->how.vertical);
    for (int k = 0; k < s->tiles; k++)
        if (place[k].source != FO_PLACE_ALIGNED && is_there(m, i, k)) return false;
    return true;
}

void fo_mosaics_settle(const fo_mosaics *m, int64_t i)
{
    const fo_mosaic *s = &m->mosaic[i];
    fo_tile_place *place = m->place + s->place;
    if (s->tiles == 1 || is_believed(m, i)) return;
    if (s->tiles != m->how.most_tiles) return;
    for (int k = 0; k < s->tiles; k++)
        if (m->usual[k].source != FO_PLACE_MASTER) return; /* no better estimate */
    memcpy(place, m->usual, (size_t)s->tiles * sizeof *place);
}
