/* convert.c - see convert.h. */
#include "convert.h"

#include "../file/plural.h"
#include "../model/edit.h"
#include "../view/view.h"

#include <fathom/number.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct edits {
    int64_t degree; /* -1: as it is */
    bool crop, move;
    double low[3], high[3];
    gs_similarity to;
} edits;

/* "x0,y0,z0,x1,y1,z1" */
static fth_status parse_box(const char *text, edits *e, fth_err *err)
{
    const char *at = text;
    for (int i = 0; i < 6; i++) {
        const char *end = NULL;
        const double v = fth_strtod(at, &end);
        if (end == at || (i < 5 ? *end != ',' : *end != '\0') || v != v)
            return FTH_FAIL(err, FTH_E_COMMAND, "--crop: expected x0,y0,z0,x1,y1,z1, found '%s'",
                            text);
        (i < 3 ? e->low : e->high)[i % 3] = v;
        at = end + 1;
    }
    for (int k = 0; k < 3; k++)
        if (e->low[k] > e->high[k])
            return FTH_FAIL(err, FTH_E_COMMAND,
                            "--crop: expected the lower corner first, found %g above %g", e->low[k],
                            e->high[k]);
    e->crop = true;
    return FTH_OK;
}

static fth_status read_flags(edits *e, fth_mem *mem,
                             const char *(*value)(void *user, const char *flag), void *user,
                             fth_err *err)
{
    const char *degree = value(user, "sh-degree"), *box = value(user, "crop"),
               *file = value(user, "transform");
    *e = (edits){.degree = -1};
    if (degree && (!fth_int_parse(degree, &e->degree) || e->degree < 0 || e->degree >= GS_DEGREES))
        return FTH_FAIL(err, FTH_E_COMMAND, "--sh-degree: expected 0 to 3, found '%s'", degree);
    if (box) FTH_TRY(parse_box(box, e, err));
    if (file) FTH_TRY(gs_similarity_load(&e->to, mem, file, err));
    e->move = file != NULL;
    return FTH_OK;
}

/* Bounding box of the means, for the message about an empty box. */
static fth_status nothing_left(const edits *e, const char *in, const gs_model *m, fth_err *err)
{
    float low[3], high[3];
    for (int k = 0; k < 3; k++) {
        low[k] = high[k] = m->at[GS_MEANS][k];
        for (int64_t g = 1; g < m->n; g++) {
            const float v = m->at[GS_MEANS][3 * g + k];
            low[k] = v < low[k] ? v : low[k];
            high[k] = v > high[k] ? v : high[k];
        }
    }
    FTH_FAIL(err, FTH_E_FILE_SHAPE,
             "%s: expected Gaussians in the box %g,%g,%g,%g,%g,%g, found none of %" PRId64, in,
             e->low[0], e->low[1], e->low[2], e->high[0], e->high[1], e->high[2], m->n);
    fth_err_hint(err, "its means lie in %g,%g,%g,%g,%g,%g", (double)low[0], (double)low[1],
                 (double)low[2], (double)high[0], (double)high[1], (double)high[2]);
    return FTH_E_FILE_SHAPE;
}

static bool is_inside(const edits *e, const float *mean)
{
    for (int k = 0; k < 3; k++)
        if (!((double)mean[k] >= e->low[k] && (double)mean[k] <= e->high[k])) return false;
    return true;
}

static fth_status check_box(const edits *e, const char *in, const gs_model *m, fth_err *err)
{
    if (!e->crop || m->n == 0) return FTH_OK;
    for (int64_t g = 0; g < m->n; g++)
        if (is_inside(e, m->at[GS_MEANS] + 3 * g)) return FTH_OK;
    return nothing_left(e, in, m, err);
}

static void apply(edits *e, gs_model *m)
{
    if (e->crop) gs_model_crop(m, e->low, e->high);
    if (e->degree >= 0) gs_model_lower(m, (int)e->degree);
    if (e->move) gs_model_transform(m, &e->to);
}

/* At most: all rows and their order; of SOG also a picture of them while it is packed, and the
 * largest palette with what finds it. */
static uint64_t bytes_of(const gs_model_info *info, gs_format to)
{
    const uint64_t rows = (uint64_t)info->n, all = rows * (gs_row_bytes(info->degree) + 16);
    return all + (to == GS_FORMAT_SOG ? rows * 56 + (96 << 20) : 1 << 20);
}

static fth_status convert(fth_mem *mem, const char *given, const char *to, edits *e, fth_answer *a,
                          fth_err *err)
{
    char in[FTH_PATH];
    gs_format format = GS_FORMAT_SPLAT; /* that of the rows in a page */
    gs_model_info info;
    gs_model m;
    const bool page = gs_view_is(to);
    if (!page) FTH_TRY(gs_format_of_path(to, &format, err));
    FTH_TRY(gs_model_find(mem, given, in, err));
    const fth_path_use use[2] = {{FTH_FILE_INPUT, "IN", in}, {FTH_FILE_OUTPUT, "OUT", to}};
    FTH_TRY(fth_paths_check(use, 2, mem, err));
    FTH_TRY(gs_model_look(mem, in, &info, err));
    if (e->degree > info.degree)
        return FTH_FAIL(err, FTH_E_COMMAND,
                        "--sh-degree: expected at most the degree of %s, %d, found %" PRId64, in,
                        info.degree, e->degree);
    fth_answer_file(a, FTH_FILE_INPUT, in, -1, "%s, %" PRId64 " Gaussians of degree %d",
                    gs_format_names[info.format], info.n, info.degree);
    if (strcmp(given, in) != 0) fprintf(a->notes, "model: %s\n", in);
    fth_answer_file(a, FTH_FILE_OUTPUT, to, -1, "%s", page ? "html" : gs_format_names[format]);
    if (a->plan) {
        fth_answer_memory(a, bytes_of(&info, page ? GS_FORMAT_SPLAT : format),
                          "all Gaussians, their order, and the work of packing");
        return FTH_OK;
    }
    FTH_TRY(gs_model_load_finite(&m, mem, in, info.format, err));
    fth_status s = check_box(e, in, &m, err);
    if (s == FTH_OK) apply(e, &m);
    const int64_t n = m.n;
    if (s == FTH_OK) s = page ? gs_view_save(&m, to, err) : gs_model_save(&m, to, format, err);
    gs_model_free(&m);
    if (s != FTH_OK) return s;
    fprintf(a->notes, "%s: %" PRId64 " Gaussian%s\n", to, n, gs_s(n));
    if (a->json) fth_json_int(fth_answer_facts(a), "gaussians", n);
    return FTH_OK;
}

static fth_status run(fth_context *ctx, int n_args, char *const *arg,
                      const char *(*value)(void *user, const char *flag), void *user, FILE *out,
                      fth_err *err)
{
    fth_mem *mem = fth_context_mem(ctx);
    fth_answer a;
    edits e;
    if (n_args != 2) {
        const fth_status s = FTH_FAIL(err, FTH_E_COMMAND, "expected two files");
        fth_err_hint(err, "fathom splat convert IN OUT");
        return s;
    }
    FTH_TRY(read_flags(&e, mem, value, user, err));
    FTH_TRY(fth_answer_begin(&a, ctx, value, user, out, err));
    return fth_answer_end(&a, convert(mem, arg[0], arg[1], &e, &a, err), err);
}

static const fth_flag flags[] = {
    {.name = "sh-degree",
     .value = FTH_FLAG_WORD,
     .doc = "leave out spherical harmonics above this degree, 0 to 3"},
    {.name = "crop",
     .value = FTH_FLAG_WORD,
     .doc = "keep Gaussians whose mean lies in the box x0,y0,z0,x1,y1,z1"},
    {.name = "transform",
     .value = FTH_FLAG_FILE,
     .doc = "rotate, scale and shift the model by the matrix in a JSON file"},
    {0}};

const fth_verb gs_verb_convert = {
    .name = "convert",
    .args = "IN OUT",
    .brief = "write a model in another format: .ply, .splat, .spz, .sog or a page, .html",
    .doc =
        "The format of IN is detected from its contents, that of OUT from its extension; for the "
        "folder of a training IN is the newest model, and a checkpoint is read too. A PLY with "
        "unit rotations passes through unchanged, byte for byte. .splat has no view-dependent "
        "colours, and is sorted, largest first; .spz is written as version 3, with as many "
        "fractional bits of positions as fit, at most 12. .sog is a zip of images, sorted by "
        "position; OUT/meta.json is the same as a folder. Its scales and colours are 256 values "
        "each, its spherical harmonics a palette of at most 65536 rows. .html is one "
        "page with a viewer in it, for a browser with WebGL2 and without a network; its rows "
        "are those of .splat.\n"
        "\n"
        "The box is cropped before the model is moved. The matrix is 4 x 4, a list of rows "
        "or the member \"matrix\" of an object, and may rotate, scale uniformly and shift; "
        "spherical harmonics rotate with it.",
    .max_args = 2,
    .flag = flags,
    .heeds = "plan json quiet",
    .run = run};
