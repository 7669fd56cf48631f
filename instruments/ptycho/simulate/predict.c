/* predict.c - the memory of a simulation, from its config and the headers of its files. */
#include "simulate.h"

#include "../object/object.h"
#include "../settings/settings.h"

#include <fathom/pictures.h>
#include <string.h>

static bool ends_with(const char *path, const char *ending)
{
    const size_t n = strlen(path), k = strlen(ending);
    return n > k && strcmp(path + n - k, ending) == 0;
}

/* [.. row col] of the header of a .npy, or of a member of an .npz; a picture is read. */
static fth_status look(fth_mem *mem, const char *path, const char *member, int64_t size[3],
                       fth_err *err)
{
    fth_source s = {0};
    fth_npz *npz = NULL;
    fth_picture picture;
    size[0] = 1;
    if (!ends_with(path, ".npy") && !ends_with(path, ".npz")) {
        FTH_TRY(fth_picture_load(mem, path, &picture, err));
        size[1] = picture.height;
        size[2] = picture.width;
        fth_picture_free(mem, &picture);
        return FTH_OK;
    }
    if (ends_with(path, ".npy")) {
        FTH_TRY(fth_npy_open(&s, mem, path, err));
    } else {
        FTH_TRY(fth_npz_open(&npz, mem, path, err));
        const fth_status got = fth_npz_source(npz, member, &s, err);
        fth_npz_close(npz);
        FTH_TRY(got);
    }
    const int n = s.n_axes;
    fth_status got = FTH_OK;
    if (n < 2 || n > 3)
        got = FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: the array has %d axes; expected [row col]", path,
                       n);
    else
        memcpy(size + (n == 2), s.size, (size_t)n * sizeof *size);
    fth_source_close(&s);
    return got;
}

fth_status pt_simulation_sizes(pt_simulation *m, fth_context *ctx, const fth_config *cfg, bool test,
                               fth_err *err)
{
    fth_mem *mem = fth_context_mem(ctx);
    int64_t size[3] = {1, fth_config_int(cfg, "size"), fth_config_int(cfg, "size")};
    *m = (pt_simulation){.noise = fth_config_bool(cfg, "noise"),
                         .counts = fth_config_choice(cfg, "units") == 1,
                         .n = fth_config_int(cfg, test ? "n_test_images" : "n_images")};
    if (fth_config_choice(cfg, "object") == PT_OBJECT_IMAGE && fth_config_has(cfg, "object_file"))
        FTH_TRY(look(mem, fth_config_text(cfg, "object_file"), "objectGuess", size, err));
    m->rows = size[1];
    m->cols = size[2];
    size[0] = 1;
    size[1] = fth_config_int(cfg, "N");
    if (fth_config_has(cfg, "probe_file"))
        FTH_TRY(look(mem, fth_config_text(cfg, "probe_file"), "probeGuess", size, err));
    m->modes = size[0];
    m->N = size[1];
    return FTH_OK;
}

uint64_t pt_simulation_held(const pt_simulation *m)
{
    return (uint64_t)(m->rows * m->cols + m->modes * m->N * m->N) * sizeof(fth_c128) +
           (uint64_t)m->n * 2 * sizeof(double);
}

uint64_t pt_simulation_bytes(const pt_simulation *m, const fth_config *cfg)
{
    const uint64_t n = (uint64_t)(m->rows > m->cols ? m->rows : m->cols);
    /* lines: four images of twice the side; others: two beside the object, a spectrum among them */
    const bool lines = fth_config_choice(cfg, "object") == PT_OBJECT_LINES;
    return pt_simulation_held(m) + (lines ? 4 * 4 * n * n * 8 : 3 * n * n * 8) + n * n * 8 / 4;
}

fth_status pt_simulation_predict(const fth_stage_call *call, bool test, fth_stage_plan *out,
                                 FILE *show, fth_err *err)
{
    fth_mem *mem = fth_context_mem(call->context);
    pt_simulation m;
    fth_graph *g = NULL;
    void *held = NULL;
    fth_err local = {0};
    FTH_TRY(pt_simulation_sizes(&m, call->context, call->config, test, err));
    (void)fth_stage_plan_hold(call, out, pt_simulation_bytes(&m, call->config),
                              1u << FTH_LIB_FATHOM);
    /* memory held while patterns are made: a block that is reserved but not used */
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, pt_simulation_held(&m), "object and probe", &held, err));
    fth_plan *plan = pt_simulation_plan(call->context, &m, &g, &local);
    fth_status s = fth_stage_plan_add(call, out, plan, 1, show, &local);
    if (s != FTH_OK && err) *err = local;
    fth_plan_destroy(plan);
    fth_graph_destroy(g);
    fth_mem_release(mem, held, NULL);
    return s;
}
