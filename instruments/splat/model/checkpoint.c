/* checkpoint.c - the model in the checkpoint of a training: arrays of a safetensors file beside the
 * rest of its state. Only read: a model is written as a PLY. */
#include "formats.h"

#include <fathom/io.h>
#include <fathom/number.h>

#include <inttypes.h>
#include <string.h>

/* The header is a JSON object behind the eight bytes of its length. */
static bool is(const uint8_t *head, uint64_t n, uint64_t size, const char *path)
{
    uint64_t header = 0;
    (void)path;
    for (int i = 0; i < 8 && n > 8; i++) header |= (uint64_t)head[i] << (8 * i);
    return n > 8 && head[8] == '{' && header > 1 && header <= size - 8;
}

static bool has(fth_safetensors *f, const char *name)
{
    for (int64_t i = 0; i < fth_safetensors_count(f); i++)
        if (strcmp(fth_safetensors_name(f, i), name) == 0) return true;
    return false;
}

/* Rows and coefficients; arrays are compared with them when they are read. */
static fth_status read_sizes(fth_safetensors *f, const char *path, gs_model_info *info,
                             fth_err *err)
{
    fth_source s;
    int64_t k = 0;
    for (int a = 0; a < GS_ATTRIBUTES; a++)
        if (a != GS_SH_N && !has(f, gs_attribute_names[a])) {
            FTH_FAIL(err, FTH_E_FILE_KEY, "%s: expected arrays of a model, found no '%s'", path,
                     gs_attribute_names[a]);
            fth_err_hint(err, "checkpoints of a training are OUT/checkpoints/model.safetensors");
            return FTH_E_FILE_KEY;
        }
    FTH_TRY(fth_safetensors_source(f, gs_attribute_names[GS_MEANS], &s, err));
    info->n = s.n_axes > 0 ? s.size[0] : 0;
    fth_source_close(&s);
    if (has(f, gs_attribute_names[GS_SH_N])) {
        FTH_TRY(fth_safetensors_source(f, gs_attribute_names[GS_SH_N], &s, err));
        k = s.n_axes > 1 ? s.size[1] : -1;
        fth_source_close(&s);
    }
    for (info->degree = 0; info->degree < GS_DEGREES; info->degree++)
        if (gs_coefficients(info->degree) == k) return FTH_OK;
    info->degree = 0;
    return FTH_FAIL(
        err, FTH_E_FILE_SHAPE,
        "%s: 'shN': expected 3, 8 or 15 coefficients on its second axis, found %" PRId64, path, k);
}

static fth_status look(fth_mem *mem, const char *path, gs_model_info *info, fth_err *err)
{
    fth_safetensors *f = NULL;
    FTH_TRY(fth_safetensors_open(&f, mem, path, err));
    const fth_status s = read_sizes(f, path, info, err);
    const char *iteration = fth_safetensors_meta(f, "iteration");
    if (!fth_int_parse(iteration ? iteration : "", &info->iteration)) info->iteration = 0;
    fth_safetensors_close(f);
    return s;
}

static fth_status load(gs_model *m, fth_mem *mem, const char *path, fth_err *err)
{
    gs_model_info info = {0};
    fth_safetensors *f = NULL;
    FTH_TRY(fth_safetensors_open(&f, mem, path, err));
    fth_status s = read_sizes(f, path, &info, err);
    if (s == FTH_OK) s = fth_safetensors_verify(f, NULL, err);
    if (s == FTH_OK) s = gs_model_create(m, mem, info.n, info.degree, err);
    for (int a = 0; s == FTH_OK && a < GS_ATTRIBUTES; a++)
        if (a != GS_SH_N || info.degree > 0)
            s = fth_safetensors_fill(f, gs_attribute_names[a], m->tensor[a], err);
    fth_safetensors_close(f);
    return s;
}

const gs_format_row gs_checkpoint_format = {"checkpoint", ".safetensors", is, look, load, NULL};
