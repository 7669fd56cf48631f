/* ngff_meta_write.c - the metadata of OME-NGFF, versions 0.4 (.zattrs) and 0.5 (zarr.json). */
#include "io/images.h"
#include "io/ngff_out.h"

#include <math.h>
#include <string.h>

/* ---- groups ---- */

void fth__ngff_group_begin(fth_json_writer *w, fth_mem *mem, int version)
{
    fth_json_begin(w, mem, true);
    fth_json_open(w, NULL, '{');
    if (version == 4) return;
    fth_json_int(w, "zarr_format", 3);
    fth_json_text(w, "node_type", "group");
    fth_json_open(w, "attributes", '{');
    fth_json_open(w, "ome", '{');
    fth_json_text(w, "version", "0.5");
}

/* What makes a folder a group. */
static fth_status put_group(fth_mem *mem, int version, const char *folder, fth_err *err)
{
    static const char v2[] = "{\n  \"zarr_format\": 2\n}\n";
    static const char v3[] = "{\n  \"zarr_format\": 3,\n  \"node_type\": \"group\"\n}\n";
    return version == 4 ? fth__zarr_put(mem, folder, ".zgroup", v2, sizeof v2 - 1, err)
                        : fth__zarr_put(mem, folder, "zarr.json", v3, sizeof v3 - 1, err);
}

fth_status fth__ngff_group_save(fth_json_writer *w, fth_mem *mem, int version, const char *folder,
                                fth_err *err)
{
    for (int i = version == 4 ? 1 : 3; i > 0; i--) fth_json_close(w);
    FTH_TRY(fth__zarr_put_json(w, folder, version == 4 ? ".zattrs" : "zarr.json", err));
    return version == 4 ? put_group(mem, 4, folder, err) : FTH_OK;
}

fth_status fth__ngff_group_plain(fth_mem *mem, int version, const char *folder, fth_err *err)
{
    FTH_TRY(fth_folder_make_all(mem, folder, err));
    return put_group(mem, version, folder, err);
}

/* ---- an image ---- */

/* What is known of an axis: its kind, its unit, and how large one step is. */
typedef struct step {
    const char *type, *unit;
    double size;
} step;

static step step_of(const fth__ngff_spec *s, char axis)
{
    if (axis == 'c') return (step){"channel", NULL, 1};
    const double size = axis == 't' ? s->scale[0] / 1000 : s->scale[axis == 'z' ? 1 : 2];
    const bool time = axis == 't', known = size > 0;
    const char *unit = time ? "second" : "micrometer";
    return (step){time ? "time" : "space", known ? unit : NULL, known ? size : 1};
}

static void put_axes(fth_json_writer *w, const fth__ngff_spec *s)
{
    fth_json_open(w, "axes", '[');
    for (const char *a = s->axes; *a; a++) {
        const step k = step_of(s, *a);
        fth_json_open_row(w, NULL, '{');
        fth_json_bytes(w, "name", a, 1);
        fth_json_text(w, "type", k.type);
        if (k.unit) fth_json_text(w, "unit", k.unit);
        fth_json_close(w);
    }
    fth_json_close(w);
}

/* A pixel of level n stands for 2^n: its middle is no longer that of the first pixel. */
static void put_level(fth_json_writer *w, const fth__ngff_spec *s, int level)
{
    char path[12];
    const double by = (double)(1 << level);
    snprintf(path, sizeof path, "%d", level);
    fth_json_open(w, NULL, '{');
    fth_json_text(w, "path", path);
    fth_json_open(w, "coordinateTransformations", '[');
    fth_json_open_row(w, NULL, '{');
    fth_json_text(w, "type", "scale");
    fth_json_open(w, "scale", '[');
    for (const char *a = s->axes; *a; a++)
        fth_json_real(w, NULL, step_of(s, *a).size * (*a == 'y' || *a == 'x' ? by : 1));
    fth_json_close(w);
    fth_json_close(w);
    if (level > 0) {
        fth_json_open_row(w, NULL, '{');
        fth_json_text(w, "type", "translation");
        fth_json_open(w, "translation", '[');
        for (const char *a = s->axes; *a; a++) {
            const bool flat = *a == 'y' || *a == 'x';
            fth_json_real(w, NULL, flat ? step_of(s, *a).size * (by - 1) / 2 : 0);
        }
        fth_json_close(w);
        fth_json_close(w);
    }
    fth_json_close(w);
    fth_json_close(w);
}

/* Viewers insist on a colour and a window for each. */
static void put_channels(fth_json_writer *w, const fth__ngff_spec *s)
{
    const fth_dtype dtype = s->level[0].dtype;
    const double steps = exp2(8.0 * (double)fth_dtype_size(dtype)), /* numbers of an integer */
        least = fth__images_signed(dtype) ? -steps / 2 : 0,
                 most = dtype == FTH_F32 ? 1 : least + steps - 1;
    if (fth_texts_count(s->channels) == 0) return;
    fth_json_open(w, "omero", '{');
    fth_json_open(w, "channels", '[');
    for (int64_t i = 0; i < fth_texts_count(s->channels); i++) {
        fth_json_open_row(w, NULL, '{');
        fth_json_text(w, "label", fth_texts_get(s->channels, i));
        fth_json_text(w, "color", "FFFFFF");
        fth_json_bool(w, "active", true);
        fth_json_open(w, "window", '{');
        fth_json_real(w, "min", least);
        fth_json_real(w, "max", most);
        fth_json_real(w, "start", least);
        fth_json_real(w, "end", most);
        fth_json_close(w);
        fth_json_close(w);
    }
    fth_json_close(w);
    fth_json_close(w);
}

fth_status fth__ngff_image_save(const fth__ngff_spec *s, const char *folder, fth_err *err)
{
    fth_json_writer w;
    fth__ngff_group_begin(&w, s->mem, s->version);
    fth_json_open(&w, "multiscales", '[');
    fth_json_open(&w, NULL, '{');
    if (s->version == 4) fth_json_text(&w, "version", "0.4");
    if (s->name[0]) fth_json_text(&w, "name", s->name);
    put_axes(&w, s);
    fth_json_open(&w, "datasets", '[');
    for (int i = 0; i < s->levels; i++) put_level(&w, s, i);
    fth_json_close(&w);
    fth_json_text(&w, "type", "mean");
    fth_json_close(&w);
    fth_json_close(&w);
    put_channels(&w, s);
    return fth__ngff_group_save(&w, s->mem, s->version, folder, err);
}
