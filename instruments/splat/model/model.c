/* model.c - rows of Gaussians, and their files by content and by name. */
#include "formats.h"

#include <fathom/number.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

const char *const gs_attribute_names[GS_ATTRIBUTES] = {"means",   "sh0",      "shN",
                                                       "scaling", "rotation", "opacity"};
const char *const gs_attribute_axes[GS_ATTRIBUTES] = {"g xyz", "g c",    "g k c",
                                                      "g xyz", "g wxyz", "g"};

int64_t gs_columns(gs_attribute attribute, int degree)
{
    static const int64_t columns[GS_ATTRIBUTES] = {3, 3, 0, 3, 4, 1};
    return attribute == GS_SH_N ? 3 * gs_coefficients(degree) : columns[attribute];
}

uint64_t gs_row_bytes(int degree)
{
    int64_t n = 0;
    for (int a = 0; a < GS_ATTRIBUTES; a++) n += gs_columns((gs_attribute)a, degree);
    return (uint64_t)n * sizeof(float);
}

fth_status gs_model_create(gs_model *m, fth_mem *mem, int64_t n, int degree, fth_err *err)
{
    *m = (gs_model){.mem = mem, .n = n, .degree = degree};
    for (int a = 0; a < GS_ATTRIBUTES; a++) {
        const int64_t size[3] = {
            n, a == GS_SH_N ? gs_coefficients(degree) : gs_columns((gs_attribute)a, degree), 3};
        const int axes = a == GS_SH_N ? 3 : a == GS_OPACITY ? 1 : 2;
        const fth_status s =
            fth_tensor_create(&m->tensor[a], mem, gs_attribute_names[a], FTH_F32, axes, size, err);
        if (s != FTH_OK) {
            gs_model_free(m);
            return s;
        }
        m->at[a] = fth_tensor_data(m->tensor[a]);
        memset(m->at[a], 0, (size_t)fth_tensor_bytes(m->tensor[a]));
    }
    return FTH_OK;
}

void gs_model_free(gs_model *m)
{
    for (int a = 0; a < GS_ATTRIBUTES; a++) (void)fth_tensor_release(m->tensor[a]);
    *m = (gs_model){0};
}

void gs_model_cut(gs_model *m, int64_t n)
{
    if (n < m->n) m->n = n;
}

void gs_model_move(gs_model *m, int64_t to, int64_t from)
{
    if (to == from) return;
    for (int a = 0; a < GS_ATTRIBUTES; a++) {
        const int64_t columns = gs_columns((gs_attribute)a, m->degree);
        memcpy(m->at[a] + to * columns, m->at[a] + from * columns, (size_t)columns * sizeof(float));
    }
}

/* ---- files ---- */

static const gs_format_row *const rows[GS_FORMATS] = {
    &gs_ply_format, &gs_dotsplat_format, &gs_spz_format, &gs_sog_format, &gs_checkpoint_format};
const char *const gs_format_names[GS_FORMATS] = {"ply", "splat", "spz", "sog", "checkpoint"};

bool gs_path_ends(const char *path, const char *ending)
{
    const size_t n = strlen(path), k = strlen(ending);
    return n > k && strcasecmp(path + n - k, ending) == 0;
}

fth_status gs_model_look(fth_mem *mem, const char *path, gs_model_info *info, fth_err *err)
{
    uint8_t head[16] = {0};
    fth_file *f = NULL;
    *info = (gs_model_info){0};
    if (fth_path_kind_of(path) == FTH_PATH_FOLDER) {
        char meta[FTH_PATH];
        FTH_TRY(fth_path_join(meta, path, "meta.json", err));
        if (fth_path_kind_of(meta) != FTH_PATH_FILE) {
            FTH_FAIL(err, FTH_E_FILE_OPEN,
                     "%s: expected a model, found a folder with neither splat_<iteration>.ply nor "
                     "the checkpoint of a training nor meta.json of a SOG",
                     path);
            fth_err_hint(err, "name the file of the model");
            return FTH_E_FILE_OPEN;
        }
        info->format = GS_FORMAT_SOG;
        return gs_sog_format.look(mem, path, info, err);
    }
    FTH_TRY(fth_file_open(&f, mem, path, err));
    const uint64_t size = fth_file_bytes(f), n = size < sizeof head ? size : sizeof head;
    const fth_status s = fth_file_read(f, 0, n, head, "its first bytes", err);
    fth_file_close(f);
    FTH_TRY(s);
    for (int i = 0; i < GS_FORMATS; i++)
        if (rows[i]->is(head, n, size, path)) {
            info->format = (gs_format)i;
            return rows[i]->look(mem, path, info, err);
        }
    FTH_FAIL(err, FTH_E_FILE_FORMAT,
             "%s, byte 0: expected a model (.ply, .splat, .spz, .sog or the .safetensors of a "
             "training), found other bytes",
             path);
    fth_err_hint(err, "models are identified by their first bytes, not by their names");
    return FTH_E_FILE_FORMAT;
}

int64_t gs_model_iteration(const char *path)
{
    static const char before[] = "splat_", after[] = ".ply";
    const char *name = fth_path_name(path);
    char digits[24];
    int64_t n = -1;
    if (strncmp(name, before, sizeof before - 1) != 0 || !gs_path_ends(name, after)) return -1;
    name += sizeof before - 1;
    const size_t length = strlen(name) - (sizeof after - 1);
    if (length == 0 || length > 18 || strspn(name, "0123456789") != length) return -1;
    snprintf(digits, sizeof digits, "%.*s", (int)length, name);
    return fth_int_parse(digits, &n) ? n : -1;
}

fth_status gs_model_find(fth_mem *mem, const char *path, char found[FTH_PATH], fth_err *err)
{
    fth_texts *list = NULL;
    const char *newest = NULL;
    int64_t most = -1;
    if (snprintf(found, FTH_PATH, "%s", path) >= FTH_PATH)
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "the path of the model is too long");
    if (fth_path_kind_of(path) != FTH_PATH_FOLDER) return FTH_OK;
    FTH_TRY(fth_folder_list(&list, mem, path, err));
    for (int64_t i = 0; i < fth_texts_count(list); i++) {
        const char *name = fth_texts_get(list, i);
        const int64_t iteration = gs_model_iteration(name);
        if (iteration <= most) continue;
        most = iteration;
        newest = name;
    }
    const fth_status s = fth_path_join(found, path, newest ? newest : GS_CHECKPOINT_FILE, err);
    fth_texts_free(list);
    if (s == FTH_OK && !newest && fth_path_kind_of(found) != FTH_PATH_FILE)
        snprintf(found, FTH_PATH, "%s", path);
    return s;
}

fth_status gs_model_load(gs_model *m, fth_mem *mem, const char *path, gs_format format,
                         fth_err *err)
{
    *m = (gs_model){0};
    const fth_status s = rows[format]->load(m, mem, path, err);
    if (s != FTH_OK) gs_model_free(m);
    return s;
}

static bool is_flaw(int attribute, float v)
{
    return attribute == GS_OPACITY ? isnan(v) : !isfinite(v);
}

/* As a PLY calls it; f_rest is channel after channel there. */
static void name_column(gs_attribute a, int64_t column, int degree, char name[GS_COLUMN_NAME])
{
    static const char *const before[GS_ATTRIBUTES] = {"", "f_dc_", "f_rest_", "scale_", "rot_", ""};
    const int64_t at = a == GS_SH_N ? column % 3 * gs_coefficients(degree) + column / 3 : column;
    if (a == GS_OPACITY)
        snprintf(name, GS_COLUMN_NAME, "opacity");
    else if (a == GS_MEANS)
        snprintf(name, GS_COLUMN_NAME, "%c", "xyz"[column]);
    else
        snprintf(name, GS_COLUMN_NAME, "%s%" PRId64, before[a], at);
}

void gs_model_find_flaws(const gs_model *m, gs_flaws *f)
{
    *f = (gs_flaws){0};
    for (int a = 0; a < GS_ATTRIBUTES; a++) {
        const int64_t columns = gs_columns((gs_attribute)a, m->degree);
        for (int64_t i = 0; i < m->n * columns; i++) {
            if (!is_flaw(a, m->at[a][i])) continue;
            if (f->count == 0 || i / columns < f->row) {
                f->row = i / columns;
                f->value = (double)m->at[a][i];
                name_column((gs_attribute)a, i % columns, m->degree, f->column);
            }
            f->count++;
        }
    }
}

fth_status gs_model_load_finite(gs_model *m, fth_mem *mem, const char *path, gs_format format,
                                fth_err *err)
{
    gs_flaws f;
    FTH_TRY(gs_model_load(m, mem, path, format, err));
    gs_model_find_flaws(m, &f);
    if (f.count == 0) return FTH_OK;
    FTH_FAIL(err, FTH_E_FILE_FORMAT,
             "%s: row %" PRId64 ", %s: expected a finite number, found %g, as %" PRId64
             " of the file %s",
             path, f.row, f.column, f.value, f.count, f.count == 1 ? "is" : "are");
    fth_err_hint(err, "remove those rows");
    gs_model_free(m);
    return FTH_E_FILE_FORMAT;
}

fth_status gs_format_of_path(const char *path, gs_format *format, fth_err *err)
{
    for (int i = 0; i < GS_FORMATS; i++)
        if (rows[i]->save && gs_path_ends(path, rows[i]->ending)) {
            *format = (gs_format)i;
            return FTH_OK;
        }
    if (gs_path_is_meta(path)) {
        *format = GS_FORMAT_SOG;
        return FTH_OK;
    }
    FTH_FAIL(err, FTH_E_COMMAND, "%s: the extension names no format of models", path);
    fth_err_hint(err, "models are written as .ply, .splat, .spz, .sog and meta.json; "
                      "'fathom splat convert' makes an .html of one too");
    return FTH_E_COMMAND;
}

fth_status gs_model_save(const gs_model *m, const char *path, gs_format format, fth_err *err)
{
    if (rows[format]->save) return rows[format]->save(m, path, err);
    return FTH_FAIL(err, FTH_E_USAGE, "%s: models are not written as %s", path, rows[format]->name);
}
