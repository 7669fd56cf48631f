/* map.c - see map.h: the three methods. */
#include "map.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

/* A position further from every well than half of their pitch shows none of them. */
#define FARTHEST_UM (FO_WELL_PITCH_UM / 2)

const char *fo_map_method_name(fo_map_method method)
{
    static const char *const name[FO_MAP_METHODS] = {"auto", "xy", "series_number_map", "implicit",
                                                     "marker"};
    return name[method];
}

static fth_status FTH_PRINTF(3, 4) note(fo_map *map, fth_err *err, const char *fmt, ...)
{
    char text[300];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return fth_texts_add(map->notes, text, strlen(text), err);
}

/* ---- by place ---- */

static int nearest(const fo_stage_place *reference, fo_stage_place p, double *distance)
{
    int best = -1;
    *distance = (double)INFINITY;
    for (int w = 0; w < FO_WELLS; w++) {
        const double d = hypot(reference[w].x_um - p.x_um, reference[w].y_um - p.y_um);
        if (d < *distance) {
            *distance = d;
            best = w;
        }
    }
    return best;
}

static fth_status take_nearest(fo_map *map, const fo_map_input *in, const fo_stage_place *reference,
                               fth_err *err)
{
    for (int64_t i = 0; i < in->n; i++) {
        double distance;
        const int well = nearest(reference, in->position[i], &distance);
        if (well < 0) {
            FTH_TRY(note(map, err, "series %" PRId64 ": the file has no stage position", i + 1));
            map->rejected++;
            continue;
        }
        map->distance_um[i] = distance;
        if (distance > FARTHEST_UM) {
            char name[FO_WELL_NAME];
            FTH_TRY(note(map, err,
                         "series %" PRId64
                         ": the nearest well, %s, is %.0f um away; at most %.0f um are allowed",
                         i + 1, fo_well_name(well, name), distance, FARTHEST_UM));
            map->rejected++;
            continue;
        }
        map->well[i] = well;
    }
    return FTH_OK;
}

/* Places of the wells that the sheet names, for a fit. */
static void known_wells(const fo_map_input *in, fo_stage_place known[FO_WELLS])
{
    for (int w = 0; w < FO_WELLS; w++) {
        const double series = in->sheet ? in->sheet[w] : (double)NAN;
        const bool there = series >= 1 && series <= (double)in->n && series == floor(series);
        known[w] =
            there ? in->position[(int64_t)series - 1] : (fo_stage_place){(double)NAN, (double)NAN};
    }
}

static fth_status by_place(fo_map *map, const fo_map_input *in, fth_err *err)
{
    fo_stage_place known[FO_WELLS], fitted[FO_WELLS];
    if (in->reference) return take_nearest(map, in, in->reference, err);
    known_wells(in, known);
    if (!fo_map_fit(fitted, known))
        return FTH_FAIL(
            err, FTH_E_FILE_KEY,
            "positions cannot be mapped by their coordinates: there is no table of wells, and the "
            "workbook names fewer than three wells that are not collinear; give --ref-xy or "
            "--map sheet");
    map->fitted = true;
    return take_nearest(map, in, fitted, err);
}

/* ---- by the sheet ---- */

static fth_status by_sheet(fo_map *map, const fo_map_input *in, fth_err *err)
{
    if (!in->sheet)
        return FTH_FAIL(err, FTH_E_FILE_KEY,
                        "the workbook has no sheet series_number_map; add it, or give --ref-xy");
    /* Down each column, then the next: the order that decides between duplicates. */
    for (int i = 0; i < FO_WELLS; i++) {
        const int well = i % FO_ROWS * FO_COLUMNS + i / FO_ROWS;
        const double series = in->sheet[well];
        char name[FO_WELL_NAME];
        fo_well_name(well, name);
        if (isnan(series)) continue;
        if (!(series >= 1 && series <= (double)in->n) || series != floor(series)) {
            map->out_of_range++;
            char text[FTH_NUMBER];
            FTH_TRY(note(map, err,
                         "series_number_map, well %s: %s is not a series of this file, which has 1 "
                         "to %" PRId64,
                         name, fth_number_format(text, sizeof text, series, 0), in->n));
            continue;
        }
        int *slot = &map->well[(int64_t)series - 1];
        if (*slot >= 0) {
            char other[FO_WELL_NAME];
            map->duplicates++;
            FTH_TRY(note(map, err,
                         "series_number_map: series %" PRId64 " is at %s and %s; %s is used",
                         (int64_t)series, fo_well_name(*slot, other), name, other));
            continue;
        }
        *slot = well;
    }
    return FTH_OK;
}

static fth_status implicitly(fo_map *map, const fo_map_input *in, fth_err *err)
{
    if (in->n > FO_WELLS)
        return FTH_FAIL(err, FTH_E_FILE_KEY,
                        "%" PRId64 " positions cannot be the %d wells of a plate in order", in->n,
                        FO_WELLS);
    for (int64_t i = 0; i < in->n; i++) map->well[i] = (int)i;
    return FTH_OK;
}

/* ---- all ---- */

static fo_map_method choose(const fo_map_input *in)
{
    if (in->method != FO_MAP_AUTO) return in->method;
    if (in->reference) return FO_MAP_XY;
    return in->sheet || !in->allow_implicit ? FO_MAP_SHEET : FO_MAP_IMPLICIT;
}

/* Two positions of one well would have the same image names: the nearer one is used, of equally
 * near ones the first. */
static fth_status check_duplicates(fo_map *map, const fo_map_input *in, fth_err *err)
{
    int64_t first[FO_WELLS];
    for (int w = 0; w < FO_WELLS; w++) first[w] = -1;
    for (int64_t i = 0; i < in->n; i++) {
        if (map->well[i] < 0) continue;
        char name[FO_WELL_NAME];
        int64_t *seen = &first[map->well[i]];
        fo_well_name(map->well[i], name);
        if (*seen < 0) {
            *seen = i;
            continue;
        }
        map->duplicates++;
        if (!in->allow_duplicates)
            return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                            "series %" PRId64 " and %" PRId64
                            " are both mapped to well %s; correct the map, or "
                            "give --allow-duplicate-wells",
                            *seen + 1, i + 1, name);
        const bool nearer = map->distance_um[i] < map->distance_um[*seen];
        FTH_TRY(note(map, err,
                     "series %" PRId64 " and %" PRId64
                     " are both mapped to well %s; series %" PRId64 " is used",
                     *seen + 1, i + 1, name, (nearer ? i : *seen) + 1));
        map->well[nearer ? *seen : i] = -1;
        if (nearer) *seen = i;
    }
    return FTH_OK;
}

static fth_status fill(fo_map *map, const fo_map_input *in, fth_err *err)
{
    static fth_status (*const method[FO_MAP_METHODS])(fo_map *, const fo_map_input *, fth_err *) = {
        [FO_MAP_XY] = by_place, [FO_MAP_SHEET] = by_sheet, [FO_MAP_IMPLICIT] = implicitly};
    map->method = choose(in);
    FTH_TRY(method[map->method](map, in, err));
    FTH_TRY(check_duplicates(map, in, err));
    for (int64_t i = 0; i < in->n; i++) map->mapped += map->well[i] >= 0;
    if (map->mapped == 0)
        return FTH_FAIL(err, FTH_E_FILE_KEY,
                        "none of %" PRId64 " positions could be mapped to a well by %s", in->n,
                        fo_map_method_name(map->method));
    if (!fo_map_agrees(map, in->position))
        FTH_TRY(note(map, err,
                     "wells and stage positions disagree: rows should increase with y, columns "
                     "decrease with x"));
    return FTH_OK;
}

static fth_status prepare(fo_map *map, fth_mem *mem, int64_t positions, fth_err *err)
{
    const uint64_t n = (uint64_t)positions;
    *map = (fo_map){.mem = mem, .n = positions};
    FTH_TRY(fth_texts_create(&map->notes, mem, err));
    FTH_TRY(fth_mem_take(mem, FTH_MEM_META, n * sizeof *map->well, "wells of positions",
                         (void **)&map->well, err));
    FTH_TRY(fth_mem_take(mem, FTH_MEM_META, n * sizeof *map->distance_um, "distances to wells",
                         (void **)&map->distance_um, err));
    for (int64_t i = 0; i < positions; i++) {
        map->well[i] = -1;
        map->distance_um[i] = (double)NAN;
    }
    return FTH_OK;
}

fth_status fo_map_make(fo_map *map, fth_mem *mem, const fo_map_input *in, fth_err *err)
{
    fth_status s = prepare(map, mem, in->n, err);
    if (s == FTH_OK) s = fill(map, in, err);
    if (s != FTH_OK) fo_map_free(map);
    return s;
}

fth_status fo_map_take(fo_map *map, fth_mem *mem, const int *well, int64_t n, fth_err *err)
{
    const fth_status s = prepare(map, mem, n, err);
    if (s != FTH_OK) {
        fo_map_free(map);
        return s;
    }
    map->method = FO_MAP_MARKER;
    for (int64_t i = 0; i < n; i++) {
        map->well[i] = well[i];
        map->mapped += well[i] >= 0;
    }
    return FTH_OK;
}

void fo_map_free(fo_map *map)
{
    if (map->well) fth_mem_release(map->mem, map->well, NULL);
    if (map->distance_um) fth_mem_release(map->mem, map->distance_um, NULL);
    fth_texts_free(map->notes);
    *map = (fo_map){0};
}
