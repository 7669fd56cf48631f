/* map_files.c - the table of wells that is read, and the record of a map that is written. */
#include "map.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static int64_t column_of(const fth_csv *csv, const char *name)
{
    for (int64_t i = 0; i < csv->width; i++)
        if (strcmp(fth_csv_get(csv, 0, i), name) == 0) return i;
    return -1;
}

static fth_status read_rows(fo_stage_place *place, const fth_csv *csv, fth_err *err)
{
    static const char *const name[3] = {"well", "x_um", "y_um"};
    int64_t column[3];
    for (int i = 0; i < 3; i++) {
        column[i] = column_of(csv, name[i]);
        if (column[i] < 0)
            return FTH_FAIL(err, FTH_E_FILE_KEY, "%s: no column \"%s\"; expected well, x_um, y_um",
                            csv->path, name[i]);
    }
    for (int64_t r = 1; r < csv->rows; r++) {
        const char *well = fth_csv_get(csv, r, column[0]);
        const char *x = fth_csv_get(csv, r, column[1]), *y = fth_csv_get(csv, r, column[2]);
        const int w = fo_well_parse(well);
        fo_stage_place p;
        if (w < 0)
            return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                            "%s, row %" PRId64 ": \"%s\" is not a well; expected A01 to H12",
                            csv->path, r + 1, well);
        if (!fth_real_parse(x, &p.x_um) || !fth_real_parse(y, &p.y_um) ||
            !isfinite(p.x_um + p.y_um))
            return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                            "%s, row %" PRId64 ": \"%s\" and \"%s\" are not coordinates in um",
                            csv->path, r + 1, x, y);
        if (!isnan(place[w].x_um))
            return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s, row %" PRId64 ": well %s is listed twice",
                            csv->path, r + 1, well);
        place[w] = p;
    }
    return FTH_OK;
}

fth_status fo_map_read_reference(fo_stage_place place[FO_WELLS], fth_mem *mem, const char *path,
                                 fth_err *err)
{
    fth_csv csv;
    for (int w = 0; w < FO_WELLS; w++) place[w] = (fo_stage_place){(double)NAN, (double)NAN};
    FTH_TRY(fth_csv_read(&csv, mem, path, err));
    const fth_status s = read_rows(place, &csv, err);
    fth_csv_free(&csv);
    return s;
}

static fth_status save_csv(const fo_map *map, const char *path, fth_err *err)
{
    fth_lines t;
    fth_lines_begin(&t, map->mem);
    fth_lines_add(&t, "series_number,well_index,mapping_method\n");
    for (int64_t i = 0; i < map->n; i++) {
        char name[FO_WELL_NAME];
        if (map->well[i] < 0) continue;
        fth_lines_add(&t, "%" PRId64 ",%s,%s\n", i + 1, fo_well_name(map->well[i], name),
                      fo_map_method_name(map->method));
    }
    return fth_lines_save(&t, path, err);
}

/* Wells between the first and the last of a row that show nothing. */
static void write_gaps(fth_json_writer *w, const fo_map *map)
{
    bool there[FO_WELLS] = {0};
    for (int64_t i = 0; i < map->n; i++)
        if (map->well[i] >= 0) there[map->well[i]] = true;
    fth_json_open_row(w, "gaps", '[');
    for (int row = 0; row < FO_ROWS; row++) {
        int last = -1;
        for (int c = 0; c < FO_COLUMNS; c++)
            if (there[row * FO_COLUMNS + c]) last = c;
        bool begun = false;
        for (int c = 0; c < last; c++) {
            char name[FO_WELL_NAME];
            begun = begun || there[row * FO_COLUMNS + c];
            if (begun && !there[row * FO_COLUMNS + c])
                fth_json_text(w, NULL, fo_well_name(row * FO_COLUMNS + c, name));
        }
    }
    fth_json_close(w);
}

static void write_distances(fth_json_writer *w, const fo_map *map)
{
    double least = (double)INFINITY, most = -(double)INFINITY, sum = 0;
    int64_t n = 0;
    for (int64_t i = 0; i < map->n; i++) {
        const double d = map->distance_um[i];
        if (map->well[i] < 0 || isnan(d)) continue;
        least = fmin(least, d);
        most = fmax(most, d);
        sum += d;
        n++;
    }
    fth_json_open_row(w, "distance_um", '{'); /* null where positions were not mapped by place */
    fth_json_real(w, "min", least);
    fth_json_real(w, "max", most);
    fth_json_real(w, "mean", n ? sum / (double)n : (double)NAN);
    fth_json_close(w);
}

static fth_status save_json(const fo_map *map, const char *path, fth_err *err)
{
    fth_json_writer w;
    fth_json_begin(&w, map->mem, true);
    fth_json_open(&w, NULL, '{');
    fth_json_text(&w, "method", fo_map_method_name(map->method));
    fth_json_bool(&w, "fitted", map->fitted);
    fth_json_int(&w, "positions", map->n);
    fth_json_int(&w, "mapped", map->mapped);
    fth_json_int(&w, "rejected", map->rejected);
    fth_json_int(&w, "out_of_range", map->out_of_range);
    fth_json_int(&w, "duplicates", map->duplicates);
    write_distances(&w, map);
    write_gaps(&w, map);
    fth_json_open(&w, "notes", '[');
    for (int64_t i = 0; i < fth_texts_count(map->notes); i++)
        fth_json_text(&w, NULL, fth_texts_get(map->notes, i));
    fth_json_close(&w);
    fth_json_close(&w);
    return fth_json_save(&w, path, err);
}

fth_status fo_map_save(const fo_map *map, const char *csv, const char *json, fth_err *err)
{
    FTH_TRY(save_csv(map, csv, err));
    return save_json(map, json, err);
}
