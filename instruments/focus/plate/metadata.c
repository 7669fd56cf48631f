/* metadata.c - see metadata.h. */
#include "metadata.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

fth_status fo_metadata_check(const fo_metadata *m, fth_err *err)
{
    bool missing[FO_WELLS] = {0};
    char list[FO_WELLS * (FO_WELL_NAME + 1) + 1] = "";
    for (int64_t i = 0; i < m->n; i++)
        if (!m->plate->has_well[m->row[i].well]) missing[m->row[i].well] = true;
    size_t n = 0;
    for (int w = 0; w < FO_WELLS; w++) {
        char name[FO_WELL_NAME];
        if (missing[w])
            n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", n ? ", " : "",
                                  fo_well_name(w, name));
    }
    if (n == 0) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_KEY,
                    "wells with images that the plate's table does not describe: %s; give them a "
                    "start_age_hpf in the "
                    "workbook, or leave them out with --wells",
                    list);
}

static const char yx1_columns[] =
    "well_id,well,nd2_series_num,microscope,time_int,Height (um),Width (um),Height (px),"
    "Width (px),BF Channel,Objective,Time (s),experiment_date";
static const char keyence_columns[] =
    "well_id,Time (s),Objective,Channel,Width (px),Height (px),Width (um),Height (um),"
    "well,time_string,time_int,experiment_date";

static void add_id(fth_lines *t, const fo_metadata *m, const char *well)
{
    char id[300];
    snprintf(id, sizeof id, "%s_%s", m->experiment, well);
    fth_lines_field(t, id);
}

static void add_real(fth_lines *t, double v)
{
    fth_lines_add(t, ",");
    fo_lines_float(t, v);
}

static void add_text(fth_lines *t, const char *text)
{
    fth_lines_add(t, ",");
    fth_lines_field(t, text);
}

static void add_yx1(fth_lines *t, const fo_metadata *m, const fo_metadata_row *r, const char *well)
{
    add_id(t, m, well);
    fth_lines_add(t, ",%s,%" PRId64 ",YX1,%" PRId64, well, r->series, r->t);
    add_real(t, m->height_um);
    add_real(t, m->width_um);
    fth_lines_add(t, ",%" PRId64 ",%" PRId64 ",%" PRId64, m->height_px, m->width_px, m->channel);
    add_text(t, m->objective);
    add_real(t, r->time_s);
    add_text(t, m->experiment);
}

static void add_keyence(fth_lines *t, const fo_metadata *m, const fo_metadata_row *r,
                        const char *well)
{
    add_id(t, m, well);
    add_real(t, r->time_s);
    add_text(t, m->objective);
    add_text(t, m->channel_name);
    fth_lines_add(t, ",%" PRId64 ",%" PRId64, m->width_px, m->height_px);
    add_real(t, m->width_um);
    add_real(t, m->height_um);
    fth_lines_add(t, ",%s", well);
    fth_lines_add(t, ",T%04" PRId64 ",%" PRId64, r->t, r->t);
    add_text(t, m->experiment);
}

fth_status fo_metadata_save(const fo_metadata *m, fth_mem *mem, const char *path, fth_err *err)
{
    fth_lines t;
    double first = (double)INFINITY;
    for (int64_t i = 0; i < m->n; i++) first = fmin(first, m->row[i].time_s);
    fth_lines_begin(&t, mem);
    fth_lines_add(&t, "%s", m->keyence ? keyence_columns : yx1_columns);
    for (int i = 0; i < m->plate->n_columns; i++) add_text(&t, m->plate->column[i].name);
    fth_lines_add(&t, ",Time Rel (s)\n");
    for (int64_t i = 0; i < m->n; i++) {
        const fo_metadata_row *r = &m->row[i];
        char well[FO_WELL_NAME];
        (m->keyence ? add_keyence : add_yx1)(&t, m, r, fo_well_name(r->well, well));
        for (int k = 0; k < m->plate->n_columns; k++)
            fo_plate_write_cell(&t, m->plate, &m->plate->column[k], r->well);
        add_real(&t, r->time_s - first);
        fth_lines_add(&t, "\n");
    }
    return fth_lines_save(&t, path, err);
}
