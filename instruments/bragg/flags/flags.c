/* flags.c - the table of flags.def, defaults, and how a flag changes the settings. */
#include "flag_row.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FIELD(f) .offset = offsetof(br_flags, f)
#define ELEMENT(f) .size = sizeof(((br_flags *)0)->f)
#define REAL(f, n, u) .kind = BR_KIND_REAL, FIELD(f), .values = n, .copies = 1, .unit = BR_UNIT_##u
#define COPY(f, n, u) .kind = BR_KIND_REAL, FIELD(f), .values = 1, .copies = n, .unit = BR_UNIT_##u
#define INT(f, n)                                                                                  \
    .kind = BR_KIND_INT, FIELD(f), .values = (n) < 0 ? -(n) : 1, .copies = (n) < 0 ? 1 : (n)
#define TEXT(f) .kind = BR_KIND_TEXT, FIELD(f), .values = 1, .copies = 1
#define SWITCH(f, v) .kind = BR_KIND_SWITCH, FIELD(f), ELEMENT(f), .on = v
#define SPECIAL(k) .kind = BR_KIND_##k
const br_flag_row br_flag_rows[BR_FLAG_COUNT] = {
#define BR_FLAG(id, names, needles, args, unit_, fallback, key, doc, ...)                          \
    [BR_FLAG_##id] = {.info = {names, needles, args, unit_, fallback, key, doc}, __VA_ARGS__},
#include "flags.def"
#undef BR_FLAG
};

const br_flag_info *br_flag_get_info(br_flag_id id)
{
    return &br_flag_rows[id].info;
}

/* ---- defaults ---- */

static void default_vectors(br_flags *f)
{
    static const double x[3] = {1, 0, 0}, y[3] = {0, 1, 0}, z[3] = {0, 0, 1}, down[3] = {0, -1, 0};
    memcpy(f->beam, x, sizeof x);
    memcpy(f->fdet, z, sizeof z);
    memcpy(f->sdet, down, sizeof down);
    memcpy(f->odet, x, sizeof x);
    memcpy(f->polar, z, sizeof z);
    memcpy(f->spindle, z, sizeof z);
    memcpy(f->twotheta_axis, y, sizeof y);
}

void br_flags_default(br_flags *f, bool spec)
{
    *f = (br_flags){.spec = spec,
                    .quirks = spec ? 0 : BR_QUIRKS_C,
                    .clock = (int64_t)time(NULL),
                    .seed_all = -1,
                    .dump = "Fdump.bin",
                    .cells = {1, 1, 1},
                    .fudge = 1,
                    .interpolate = 2,
                    .mosaic_spread = -1,
                    .mosaic_domains = -1,
                    .lambda = 1e-10,
                    .dispsteps = -1,
                    .div_range = {-1, -1},
                    .div_step = {-1, -1},
                    .div_steps = {-1, -1},
                    .fluence = BR_FLUENCE,
                    .exposure = 1,
                    .beamsize = 1e-4,
                    .pixel = 0.1e-3,
                    .detsize = {102.4e-3, 102.4e-3},
                    .distance = 100e-3,
                    .close_distance = (double)NAN,
                    .beam_centre = {(double)NAN, (double)NAN},
                    .close_point = {(double)NAN, (double)NAN},
                    .org = {(double)NAN, (double)NAN},
                    .convention = BR_MOSFLM,
                    .pivot = BR_PIVOT_BEAM,
                    .mu = -1,
                    .layers = -1,
                    .roi = {-1, -1, -1, -1},
                    .osc = -1,
                    .phi_step = -1,
                    .phi_steps = -1,
                    .oversample = -1,
                    .float_file = "floatimage.bin",
                    .int_file = "intimage.img",
                    .noise_file = "noiseimage.img",
                    .pgm_file = "image.pgm",
                    .write_noise = true,
                    .write_pgm = true,
                    .adc = 40,
                    .seed = 1,
                    .mosaic_seed = 12345678,
                    .misset_seed = 1,
                    .progress = true,
                    .printout_pixel = {-1, -1}};
    default_vectors(f);
}

/* ---- applying a flag ---- */

static double to_si(double v, br_flag_unit unit)
{
    switch (unit) {
    case BR_UNIT_ONE: return v;
    case BR_UNIT_MM: return v / 1000.0;
    case BR_UNIT_DEG: return br_radians(v);
    case BR_UNIT_WAVE: return v / 1.0e10;
    case BR_UNIT_EV: return (12398.42 / v) / 1.0e10;
    case BR_UNIT_UM: return v * 1e-6;
    case BR_UNIT_WATER: return v / 1e6;
    case BR_UNIT_A: return v * 1e-10;
    case BR_UNIT_PERCENT: return v / 100.0;
    }
    return v;
}

/* As atoi reads it: a long truncated to 32 bits. */
static int to_int(const char *text)
{
    return (int)(uint32_t)(uint64_t)strtol(text, NULL, 10);
}

static void set_cell(br_flags *f, const char *const *value, int n)
{
    f->cell_given = true;
    for (int i = 0; i < 6 && i < n && value[i][0] != '-'; i++)
        f->cell[i] = i < 3 ? fth_strtod(value[i], NULL) : br_radians(fth_strtod(value[i], NULL));
}

static bool set_misset(br_flags *f, const char *const *value, int n)
{
    if (n > 0 && strstr(value[0], "rand")) {
        f->misset_kind = -1;
        return true;
    }
    if (n < 3) return false;
    f->misset_kind = 1;
    for (int i = 0; i < 3; i++) f->misset[i] = br_radians(fth_strtod(value[i], NULL));
    return false;
}

static void set_absorption(br_flags *f, const char *text)
{
    const double depth = fth_strtod(text, NULL);
    if (strstr(text, "inf") || depth == 0) {
        f->thickness = 0;
        f->mu = 0;
    } else {
        f->mu = 1.0 / (depth * 1e-6);
    }
}

static void set_pivot(br_flags *f, const char *text)
{
    if (strstr(text, "sample")) f->pivot = BR_PIVOT_SAMPLE;
    if (strstr(text, "beam")) f->pivot = BR_PIVOT_BEAM;
    f->pivot_typed = f->pivot;
}

static void set_field(br_flags *f, const br_flag_row *row, const char *const *value)
{
    char *field = (char *)f + row->offset;
    for (int i = 0; i < row->values * row->copies; i++) {
        const char *text = value[row->values > 1 ? i : 0];
        if (row->kind == BR_KIND_REAL)
            ((double *)(void *)field)[i] = to_si(fth_strtod(text, NULL), row->unit);
        else if (row->kind == BR_KIND_INT)
            ((int *)(void *)field)[i] = to_int(text);
        else if (row->kind == BR_KIND_TEXT)
            ((const char **)(void *)field)[i] = text;
    }
    if (row->kind != BR_KIND_SWITCH) return;
    if (row->size == 1)
        *(bool *)(void *)field = row->on != 0;
    else
        *(int *)(void *)field = row->on;
}

static void turn_on(br_flags *f, br_flag_on what)
{
    switch (what) {
    case BR_ON_NOTHING: break;
    case BR_ON_PGM: f->write_pgm = true; break;
    case BR_ON_NOISE: f->write_noise = true; break;
    case BR_ON_PRINTOUT: f->printout = true; break;
    case BR_ON_POLAR: f->nopolar = false; break;
    }
}

bool br_flag_apply(br_flags *f, br_flag_id id, const char *const *value, int n)
{
    const br_flag_row *row = &br_flag_rows[id];
    bool stop = row->stop;
    switch (row->kind) {
    case BR_KIND_REAL:
    case BR_KIND_INT:
    case BR_KIND_TEXT:
    case BR_KIND_SWITCH: set_field(f, row, value); break;
    case BR_KIND_NOTHING: break;
    case BR_KIND_CELL: set_cell(f, value, n); break;
    case BR_KIND_MISSET: stop = set_misset(f, value, n); break;
    case BR_KIND_PIVOT: set_pivot(f, value[0]); break;
    case BR_KIND_ABSORPTION: set_absorption(f, value[0]); break;
    }
    turn_on(f, row->turns_on);
    if (row->pivot) f->pivot = row->pivot == 'B' ? BR_PIVOT_BEAM : BR_PIVOT_SAMPLE;
    if (row->custom) f->convention = BR_CUSTOM;
    f->given[id] = true;
    return stop;
}

/* ---- by name ---- */

int br_flag_find(const char *name)
{
    const size_t n = strlen(name);
    for (int i = 0; i < BR_FLAG_COUNT; i++) {
        const char *w = br_flag_rows[i].info.names;
        while (*w) {
            const size_t len = strcspn(w, " ");
            if (len == n && strncmp(w, name, n) == 0) return i;
            w += len;
            w += *w == ' ';
        }
    }
    return -1;
}

void br_flag_nearest(const char *name, char *near, size_t bytes)
{
    char list[4096] = "";
    size_t used = 0;
    for (int i = 0; i < BR_FLAG_COUNT && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? " " : "",
                                 br_flag_rows[i].info.names);
    const char *at = list;
    int k = fth_word_nearest(list, name);
    snprintf(near, bytes, "%s", "");
    if (k < 0) return;
    for (; k > 0; k--) at = strchr(at, ' ') + 1;
    snprintf(near, bytes, "%.*s", (int)strcspn(at, " "), at);
}

bool br_is_number(const char *text)
{
    double v;
    return fth_real_parse(text, &v) && isfinite(v);
}

static bool is_whole(const char *text)
{
    char *end = NULL;
    const long v = strtol(text, &end, 10);
    return end != text && !*end && v >= INT32_MIN && v <= INT32_MAX;
}

static fth_status refuse(const br_flag_row *row, const char *text, const char *wanted, fth_err *err)
{
    FTH_FAIL(err, FTH_E_COMMAND, "%.40s takes %s, not '%.200s'", row->info.names, wanted, text);
    fth_err_hint(err, "it is written %.*s %s%s%s", (int)strcspn(row->info.names, " "),
                 row->info.names, row->info.args, row->info.unit[0] ? ", in " : "", row->info.unit);
    return FTH_E_COMMAND;
}

/* How many values a row may have at least and at most. */
static void count_values(const br_flag_row *row, const char *const *value, int n, int *least,
                         int *most)
{
    *least = *most = row->values;
    if (row->kind == BR_KIND_CELL) *least = 1, *most = 6;
    if (row->kind == BR_KIND_MISSET) *least = *most = n > 0 && strstr(value[0], "rand") ? 1 : 3;
    if (row->kind == BR_KIND_PIVOT || row->kind == BR_KIND_ABSORPTION) *least = *most = 1;
    if (row->kind == BR_KIND_NOTHING) *least = *most = row->info.args[0] ? 1 : 0;
}

fth_status br_flag_check(br_flag_id id, const char *const *value, int n, fth_err *err)
{
    const br_flag_row *row = &br_flag_rows[id];
    int least, most;
    count_values(row, value, n, &least, &most);
    if (n < least || n > most) {
        FTH_FAIL(err, FTH_E_COMMAND, "%.*s takes %d value%s (%s), not %d",
                 (int)strcspn(row->info.names, " "), row->info.names, least, least == 1 ? "" : "s",
                 row->info.args, n);
        fth_err_hint(err, "%s", row->info.doc);
        return FTH_E_COMMAND;
    }
    for (int i = 0; i < n; i++) {
        const bool inf = row->kind == BR_KIND_ABSORPTION && strcmp(value[i], "inf") == 0;
        const bool random = row->kind == BR_KIND_MISSET && strncmp(value[i], "rand", 4) == 0;
        const bool number = row->kind == BR_KIND_REAL || row->kind == BR_KIND_CELL ||
                            row->kind == BR_KIND_MISSET || row->kind == BR_KIND_ABSORPTION;
        if (row->kind == BR_KIND_INT && !is_whole(value[i]))
            return refuse(row, value[i], "a whole number", err);
        if (number && !inf && !random && !br_is_number(value[i]))
            return refuse(row, value[i], "a number", err);
        if (row->kind == BR_KIND_PIVOT && strcmp(value[i], "sample") && strcmp(value[i], "beam"))
            return refuse(row, value[i], "sample or beam", err);
        if (row->kind == BR_KIND_TEXT && !value[i][0])
            return refuse(row, value[i], "the name of a file", err);
    }
    return FTH_OK;
}

fth_status br_flags_set(br_flags *f, const char *flag, const char *const *value, int n,
                        fth_err *err)
{
    char name[80], near[80];
    snprintf(name, sizeof name, "%s%s", flag[0] == '-' ? "" : "-", flag);
    const int id = br_flag_find(name);
    if (id < 0) {
        br_flag_nearest(name, near, sizeof near);
        FTH_FAIL(err, FTH_E_COMMAND, "'%.200s' is not a flag of nanoBragg", flag);
        if (near[0]) fth_err_hint(err, "did you mean %s?", near);
        return FTH_E_COMMAND;
    }
    if (br_flag_rows[id].kind == BR_KIND_SWITCH && n == 1) {
        if (strcmp(value[0], "false") == 0) return FTH_OK;
        if (strcmp(value[0], "true") == 0) n = 0;
    }
    FTH_TRY(br_flag_check((br_flag_id)id, value, n, err));
    (void)br_flag_apply(f, (br_flag_id)id, value, n);
    return FTH_OK;
}

int br_flags_reads(const br_flags *f, fth_path_use use[BR_FLAGS_READS])
{
    const fth_path_use all[BR_FLAGS_READS] = {
        {FTH_FILE_INPUT, "-hkl", f->hkl},
        {FTH_FILE_INPUT, "-mat", f->mat},
        {FTH_FILE_INPUT, "-stol", f->stol},
        {FTH_FILE_INPUT, "-sourcefile", f->sources},
        {FTH_FILE_INPUT, "-mask", f->mask},
        {FTH_FILE_INPUT, "--fdump", f->fdump},
        {FTH_FILE_INPUT, "the dump", f->hkl ? NULL : f->dump}, /* read where there is no list */
        {FTH_FILE_INPUT, "-img", f->spec ? f->img : NULL},
    };
    memcpy(use, all, sizeof all);
    return BR_FLAGS_READS;
}
