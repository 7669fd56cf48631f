/* scope.c - tables of the new layout: how each image was taken, and the plate; see job.h. */
#include "../mosaics/bench.h"
#include "job.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

static void add_real(fth_lines *t, double v)
{
    fth_lines_add(t, ",");
    if (v > 0) fth_lines_real(t, v);
}

/* "2025-01-01T00:00:00Z" of seconds since 1970; nothing where they are not known. */
static void add_date(fth_lines *t, double unix_seconds)
{
    int64_t days = (int64_t)(unix_seconds / 86400), rest = (int64_t)unix_seconds % 86400;
    fth_lines_add(t, ",");
    if (!(unix_seconds > 0)) return;
    days += 719468; /* from 0000-03-01: years then end with their leap day */
    const int64_t era = days / 146097, of_era = days % 146097;
    const int64_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    const int64_t day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    const int64_t shifted = (5 * day_of_year + 2) / 153;
    const int64_t day = day_of_year - (153 * shifted + 2) / 5 + 1,
                  month = shifted < 10 ? shifted + 3 : shifted - 9,
                  year = year_of_era + era * 400 + (month <= 2);
    fth_lines_add(
        t, "%04" PRId64 "-%02" PRId64 "-%02" PRId64 "T%02" PRId64 ":%02" PRId64 ":%02" PRId64 "Z",
        year, month, day, rest / 3600, rest / 60 % 60, rest % 60);
}

/* What the file says about the whole experiment. */
typedef struct scope {
    const char *channel, *microscope;
    double magnification, unix_seconds, first_s;
} scope;

/* The number before the x of "PlanApo 4x"; 0: there is none. */
static double magnification_of(const char *objective)
{
    for (const char *at = objective; *at; at++) {
        const char *end;
        if (*at < '0' || *at > '9') continue;
        const double v = fth_strtod(at, &end);
        if (*end == 'x' || *end == 'X') return v;
        at = end - 1;
    }
    return 0;
}

static scope scope_of(const fo_job *e, const char *channel)
{
    const double year_1 = 62135596800.0; /* seconds from its first day to 1970 */
    scope s = {.channel = channel,
               .microscope = fo_microscope_names[e->place.microscope],
               .first_s = e->seconds[0]};
    if (fo_job_is_tiled(e)) {
        s.magnification = magnification_of(e->keyence.header.objective);
        for (int64_t t = 0; t < e->n_times; t++)
            if (e->seconds[t] < s.first_s) s.first_s = e->seconds[t];
        s.unix_seconds = s.first_s - year_1;
        return s;
    }
    const fth_images_info *info = fth_images_get_info(e->in.file[0].images);
    s.magnification = info->magnification;
    s.unix_seconds = info->unix_seconds;
    return s;
}

/* Pixels of an image. */
static void size_of(const fo_job *e, const fo_metadata_row *r, int64_t *rows, int64_t *columns)
{
    *rows = e->in.rows;
    *columns = e->in.columns;
    if (!fo_job_is_tiled(e)) return;
    const fo_mosaic_how how = {.y = e->in.rows,
                               .x = e->in.columns,
                               .vertical = e->vertical,
                               .rows = e->grid_rows,
                               .columns = e->grid_columns,
                               .overlap = fth_config_real(e->cfg, "focus.overlap")};
    fo_mosaic_canvas(&how, fo_job_tiles(e, r->series - 1), rows, columns);
}

static void add_row(fth_lines *t, const fo_job *e, const fo_metadata_row *r, const scope *info)
{
    int64_t rows, columns;
    size_of(e, r, &rows, &columns);
    const char *channel = info->channel;
    const char *exp = e->place.name;
    char well[FO_WELL_NAME];
    fo_well_name(r->well, well);
    fth_lines_field(t, exp);
    fth_lines_add(t, ",%s_%s,%s,%s_%s_%s_f%04" PRId64 ",%" PRId64, exp, well, well, exp, well,
                  channel, r->t, r->t);
    add_real(t, e->in.um_per_px);
    fth_lines_add(t, ",%" PRId64 ",%" PRId64, columns, rows);
    add_real(t, info->magnification);
    add_real(t, e->clock.cycle_s);
    add_date(t, info->unix_seconds);
    fth_lines_add(t, ",");
    fth_lines_real(t, r->time_s - info->first_s);
    fth_lines_add(t, ",%s,%s,,%" PRId64 "\n", info->microscope, channel, r->t);
}

static fth_status save_series(const fo_job *e, const char *path, fth_err *err)
{
    fth_lines t;
    char well[FO_WELL_NAME];
    fth_lines_begin(&t, e->mem);
    fth_lines_add(&t, "series_number,well_index\n");
    for (int64_t p = 0; p < e->map.n; p++)
        if (e->map.well[p] >= 0)
            fth_lines_add(&t, "%" PRId64 ",%s\n", p + 1, fo_well_name(e->map.well[p], well));
    return fth_lines_save(&t, path, err);
}

fth_status fo_job_save_scope(const fo_job *e, const fo_metadata_row *row, int64_t n, fth_err *err)
{
    char folder[FTH_PATH], path[FTH_PATH];
    const bool one = fo_job_is_of_one_channel(e);
    const int64_t first = one ? e->in.stack[0].c : 0,
                  end_channel = one ? first + 1 : e->in.file[0].size[FO_C];
    fth_lines t;
    fth_lines_begin(&t, e->mem);
    fth_lines_add(&t, "experiment_id,well_id,well_index,image_id,time_int,micrometers_per_pixel,"
                      "image_width_px,image_height_px,objective_magnification,frame_interval_s,"
                      "absolute_start_time,experiment_time_s,microscope_id,channel,z_position,"
                      "frame_index\n");
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = first; c < end_channel; c++) {
            const fo_stack s = {.c = (int32_t)c};
            char channel[64];
            fo_job_channel(e, &s, FO_OUT_IMAGE, channel, sizeof channel);
            const scope info = scope_of(e, channel);
            add_row(&t, e, &row[i], &info);
        }
    FTH_TRY(fth_lines_save(&t, e->place.metadata, err));
    FTH_TRY(fth_path_parent(folder, e->place.metadata, err));
    FTH_TRY(fth_path_join(path, folder, "plate_metadata.csv", err));
    FTH_TRY(fo_plate_save_v2(&e->plate, e->place.name, path, err));
    FTH_TRY(fth_path_join(path, folder, "series_number_map.csv", err));
    const char *end = strrchr(e->place.plate, '.');
    if (e->plate.has_series && end && strcasecmp(end, ".xlsx") == 0)
        return fo_series_save_v2(e->mem, e->place.plate, path, err);
    return save_series(e, path, err);
}
