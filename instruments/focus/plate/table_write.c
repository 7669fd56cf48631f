/* table_write.c - the plate's table in rows of CSV: see table.h. */
#include "table.h"

#include <math.h>
#include <string.h>

void fo_lines_float(fth_lines *lines, double v)
{
    if (isnan(v)) return;
    fth_lines_real(lines, v);
    /* whole numbers below 1e15 are written without a point */
    if (floor(v) == v && fabs(v) < 1e15) fth_lines_add(lines, ".0");
}

/* What MorphSeq writes where a text is missing: "none" for a treatment, "nan" elsewhere in the new
 * layout. The old one has an empty field. */
static bool is_no_treatment(const char *text)
{
    static const char *const none[] = {"", "nan", "none", "null", "None", "NaN"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        if (strcmp(text, none[i]) == 0) return true;
    return false;
}

void fo_plate_write_cell(fth_lines *lines, const fo_plate *plate, const fo_plate_column *column,
                         int well)
{
    fth_lines_add(lines, ",");
    if (column->is_number)
        fo_lines_float(lines, column->number[well]);
    else
        fth_lines_field(lines, fo_plate_text(plate, column, well));
}

static void write_v2_cell(fth_lines *lines, const fo_plate *plate, const fo_plate_column *c,
                          int well)
{
    const char *text = fo_plate_text(plate, c, well);
    if (c->is_number) {
        fo_plate_write_cell(lines, plate, c, well);
        return;
    }
    if (strcmp(c->name, "treatment") == 0 && is_no_treatment(text)) text = "none";
    fth_lines_add(lines, ",");
    fth_lines_field(lines, text[0] ? text : "nan");
}

fth_status fo_plate_save_v2(const fo_plate *plate, const char *experiment, const char *path,
                            fth_err *err)
{
    fth_lines t;
    fth_lines_begin(&t, plate->mem);
    fth_lines_add(&t, "well_index,experiment_id");
    for (int i = 0; i < plate->n_columns; i++) {
        fth_lines_add(&t, ",");
        fth_lines_field(&t, plate->column[i].name);
    }
    fth_lines_add(&t, ",well_id\n");
    for (int w = 0; w < FO_WELLS; w++) {
        char name[FO_WELL_NAME];
        if (!plate->has_well[w]) continue;
        fth_lines_add(&t, "%s,", fo_well_name(w, name));
        fth_lines_field(&t, experiment);
        for (int i = 0; i < plate->n_columns; i++) write_v2_cell(&t, plate, &plate->column[i], w);
        fth_lines_add(&t, ",%s_%s\n", experiment, name);
    }
    return fth_lines_save(&t, path, err);
}
