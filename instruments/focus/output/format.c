/* format.c - see format.h. */
#include "format.h"

#include "../input/paths.h"

#include <string.h>
#include <strings.h>

static const fo_format formats[] = {
    {"png", "png", FTH_U8, false, 0},   {"png16", "png", FTH_U16, false, 0},
    {"jpg", "jpg", FTH_U8, false, 90},  {"tif", "tif", FTH_U8, false, 0},
    {"tif16", "tif", FTH_U16, true, 0}, {"tif32", "tif", FTH_F32, true, 0},
    {"npy", "npy", FTH_U16, true, 0},
};
enum { FORMATS = sizeof formats / sizeof formats[0] };

/* "jpg" or "jpg:90". */
static bool parse(const char *text, fo_format *out)
{
    const size_t n = strcspn(text, ":");
    for (int i = 0; i < FORMATS; i++) {
        if (strlen(formats[i].name) != n || strncmp(formats[i].name, text, n) != 0) continue;
        *out = formats[i];
        if (!text[n]) return true;
        int64_t quality = 0;
        if (!out->quality || !fth_int_parse(text + n + 1, &quality) || quality < 1 || quality > 100)
            return false;
        out->quality = (int)quality;
        return true;
    }
    return false;
}

/* By the ending of a file: the first format that has it. */
static bool by_ending(const char *path, fo_format *out)
{
    const char *dot = strrchr(fth_path_name(path), '.');
    if (!dot) return false;
    const char *ending = dot + 1;
    if (strcasecmp(ending, "jpeg") == 0) ending = "jpg";
    if (strcasecmp(ending, "tiff") == 0) ending = "tif";
    for (int i = 0; i < FORMATS; i++)
        if (strcasecmp(formats[i].ending, ending) == 0) {
            *out = formats[i];
            return true;
        }
    return false;
}

bool fo_format_is_ending(const char *path)
{
    fo_format f;
    return by_ending(path, &f);
}

/* Endings of pictures that are not written. */
static const char *foreign(const char *path)
{
    static const char *const endings[] = {"pgm", "ppm", "pnm",  "gif", "bmp", "webp", "jp2",
                                          "jxl", "svg", "heic", "tga", "exr", "hdr",  "pdf"};
    const char *dot = strrchr(fth_path_name(path), '.');
    for (size_t i = 0; dot && i < sizeof endings / sizeof endings[0]; i++)
        if (strcasecmp(dot + 1, endings[i]) == 0) return endings[i];
    return NULL;
}

static fth_status refuse(const char *wanted, fth_err *err)
{
    FTH_FAIL(err, FTH_E_COMMAND,
             "--image-format: expected png, png16, jpg, jpg:Q with Q from 1 to 100, tif, tif16, "
             "tif32 or npy, found '%.60s'",
             wanted);
    const int near = fth_word_nearest("png png16 jpg tif tif16 tif32 npy", wanted);
    if (near >= 0) fth_err_hint(err, "did you mean '%s'?", formats[near].name);
    return FTH_E_COMMAND;
}

fth_status fo_format_choose(const char *wanted, const char *output, const char *standard,
                            fo_format *out, fth_err *err)
{
    const size_t n = strlen(output);
    const bool file = n > 0 && output[n - 1] != '/';
    fo_format named;
    const bool known = file && by_ending(output, &named);
    if (*wanted && !parse(wanted, out)) return refuse(wanted, err);
    if (*wanted && known && strcmp(named.ending, out->ending) != 0)
        return FTH_FAIL(err, FTH_E_COMMAND,
                        "%.300s: the extension means %s, but --image-format is %s", output,
                        named.ending, out->name);
    if (*wanted) return FTH_OK;
    if (known) {
        *out = named;
        return FTH_OK;
    }
    if (file && foreign(output))
        return FTH_FAIL(
            err, FTH_E_COMMAND,
            "%.300s: images are not written as %s; use the extension .png, .jpg, .tif or .npy, "
            "or give --image-format",
            output, foreign(output));
    return parse(standard, out) ? FTH_OK
                                : FTH_FAIL(err, FTH_E_INTERNAL, "unknown format '%s'", standard);
}

/* ---- names ---- */

fo_kind fo_port_kind(fo_port port)
{
    return port < FO_OUT_KINDS ? (fo_kind)port : FO_OUT_IMAGE;
}

/* The channel that a file shows. */
static int channel_of(const fo_stack *s, fo_port port)
{
    const int other = port - FO_OUT_KINDS;
    return other < 0 ? s->c : other + (other >= s->c);
}

static bool same_stem(const fo_input *in, int64_t a, int64_t b)
{
    char x[FTH_PATH], y[FTH_PATH];
    fo_path_stem(in->file[a].path, x, sizeof x);
    fo_path_stem(in->file[b].path, y, sizeof y);
    return strcmp(x, y) == 0;
}

void fo_names_begin(fo_names *n, const fo_input *in, const char *out, const fo_format *format)
{
    size_t bytes = strlen(out);
    *n = (fo_names){.in = in, .format = *format};
    n->folder = in->n_stacks > 1 || in->others > 0 || (bytes > 0 && out[bytes - 1] == '/');
    while (bytes > 1 && out[bytes - 1] == '/') bytes--;
    snprintf(n->out, sizeof n->out, "%.*s", (int)bytes, out);
    if (in->of_planes) return;
    for (int64_t i = 0; i < in->n_files && !n->numbered; i++)
        for (int64_t j = 0; j < i && !n->numbered; j++) n->numbered = same_stem(in, i, j);
}

/* Whether an axis of the file has several values among the stacks. */
static bool is_long(const fo_names *n, fo_axis axis)
{
    return n->in->size[axis] > 1;
}

static void add(char *text, size_t bytes, const char *fmt, int value)
{
    const size_t used = strlen(text);
    char part[24];
    snprintf(part, sizeof part, "%.*s%0*d", 2, fmt, fmt[2] - '0', value);
    snprintf(text + used, bytes - used, "%s", part);
}

void fo_names_stem(const fo_names *n, int64_t stack, fo_port port, char *stem, size_t bytes)
{
    const fo_stack *s = &n->in->stack[stack];
    if (!n->folder) {
        fo_path_stem(n->out, stem, bytes);
        return;
    }
    fo_path_stem(n->in->file[n->in->of_planes ? 0 : s->file].path, stem, bytes);
    if (is_long(n, FO_P)) add(stem, bytes, "_p3", s->p);
    if (is_long(n, FO_T)) add(stem, bytes, "_t4", s->t);
    if (is_long(n, FO_C)) add(stem, bytes, "_c2", channel_of(s, port));
    if (is_long(n, FO_B) || n->numbered) add(stem, bytes, "_b4", n->numbered ? (int)(stack) : s->b);
}

/* OUT without its ending. */
static void out_stem(const fo_names *n, char path[FTH_PATH])
{
    snprintf(path, FTH_PATH, "%s", n->out);
    const char *name = fth_path_name(path), *dot = strrchr(name, '.');
    if (dot && dot > name) path[dot - path] = '\0';
}

fth_status fo_names_path(const fo_names *n, int64_t stack, fo_port port, char path[FTH_PATH],
                         fth_err *err)
{
    static const char *const endings[FO_OUT_KINDS] = {NULL, "index.tif", "depth.tif",
                                                      "confidence.tif"};
    char stem[FTH_PATH], base[FTH_PATH];
    const fo_kind kind = fo_port_kind(port);
    const char *ending = endings[kind] ? endings[kind] : n->format.ending;
    if (!n->folder && kind == FO_OUT_IMAGE) {
        snprintf(path, FTH_PATH, "%s", n->out);
        return FTH_OK;
    }
    if (n->folder) {
        fo_names_stem(n, stack, port, stem, sizeof stem);
        FTH_TRY(fth_path_join(base, n->out, stem, err));
    } else {
        out_stem(n, base);
    }
    return fth_path_beside(path, base, ending, err);
}

fth_status fo_names_table(const fo_names *n, const char *table, char path[FTH_PATH], fth_err *err)
{
    char base[FTH_PATH];
    if (n->folder) return fth_path_join(path, n->out, table, err);
    out_stem(n, base);
    return fth_path_beside(path, base, table, err);
}
