/* op.c - the verb: `fathom ptycho op NAME [IN.npz] OUT.npz`. */
#include "../settings/settings.h"
#include "block.h"

#include <string.h>

static void clear(pt_block *b)
{
    fth_graph_destroy(b->g);
    pt_model_clear(&b->model);
    for (int i = 0; i < b->n_arrays; i++) fth_tensor_release(b->array[i].data);
    fth_npz_close(b->in);
}

static const pt_block_kind *kind_of(const char *name, fth_err *err)
{
    char names[400] = "";
    for (const pt_block_kind *k = pt_block_kinds; k->name; k++) {
        if (strcmp(k->name, name) == 0) return k;
        const size_t n = strlen(names);
        snprintf(names + n, sizeof names - n, "%s%s", n ? " " : "", k->name);
    }
    FTH_FAIL(err, FTH_E_COMMAND, "'%.100s' is not a building block; expected one of %s", name,
             names);
    const int near = fth_word_nearest(names, name);
    if (near >= 0) fth_err_hint(err, "did you mean '%s'?", pt_block_kinds[near].name);
    return NULL;
}

/* Names and shapes of the values that are written. */
static void items_of(const pt_block *b, fth_file_item *item)
{
    for (int i = 0; i < b->n_outs; i++) {
        const fth_val v = b->out[i].v;
        item[i] = (fth_file_item){
            .name = b->out[i].name, .dtype = fth_val_dtype(v), .n_axes = fth_val_axes(v)};
        for (int d = 0; d < item[i].n_axes; d++) item[i].size[d] = fth_val_size(v, d);
    }
}

static fth_status write_all(pt_block *b, const char *path, fth_answer *a, fth_err *err)
{
    fth_file_item item[PT_BLOCK_OUTS];
    fth_val out[PT_BLOCK_OUTS];
    fth_sink sink[PT_BLOCK_OUTS];
    fth_npz_writer *writer = NULL;
    fth_plan *plan = NULL;
    FTH_TRY(fth_graph_check(b->g, err));
    for (int i = 0; i < b->n_outs; i++) out[i] = b->out[i].v;
    items_of(b, item);
    for (int i = 0; i < b->n_outs; i++)
        fth_answer_file(a, FTH_FILE_OUTPUT, path, -1, "%s %s", item[i].name,
                        fth_dtype_name(item[i].dtype));
    if (a->plan) {
        plan = fth_plan_make(b->g, out, b->n_outs, NULL, err);
        const fth_status s = plan ? fth_answer_plan(a, b->name, plan, err) : err->status;
        fth_plan_destroy(plan);
        return s;
    }
    FTH_TRY(fth_npz_create(&writer, b->mem, path, item, b->n_outs, err));
    fth_status s = FTH_OK;
    for (int i = 0; i < b->n_outs && s == FTH_OK; i++)
        s = fth_npz_sink(writer, item[i].name, &sink[i], err);
    const fth_limits limits = {.sinks = sink};
    if (s == FTH_OK) {
        plan = fth_plan_make(b->g, out, b->n_outs, &limits, err);
        s = plan ? fth_run(plan, sink, NULL, NULL, err) : err->status;
    }
    fth_plan_destroy(plan);
    if (s != FTH_OK) {
        fth_npz_abandon(writer);
        return s;
    }
    return fth_npz_commit(writer, err);
}

static fth_status apply(pt_block *b, const pt_block_kind *kind, const char *out_path, fth_answer *a,
                        fth_err *err)
{
    if (!kind->no_input) {
        fth_answer_file(a, FTH_FILE_INPUT, b->in_path, -1, "%s", kind->reads);
        FTH_TRY(fth_npz_open(&b->in, b->mem, b->in_path, err));
    }
    b->g = fth_graph_create(b->ctx);
    if (!b->g) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for a graph");
    FTH_TRY(kind->build(b, err));
    FTH_TRY(write_all(b, out_path, a, err));
    if (!a->plan)
        for (int i = 0; i < b->n_outs; i++) {
            char text[160];
            fprintf(a->out, "%s\n",
                    fth_val_format(fth_label(b->out[i].v, b->out[i].name), text, sizeof text));
        }
    return FTH_OK;
}

static fth_status run(fth_context *ctx, int n_args, char *const *arg,
                      const char *(*value)(void *user, const char *flag), void *user, FILE *out,
                      fth_err *err)
{
    static const char usage[] = "write 'fathom ptycho op NAME [IN.npz] OUT.npz'";
    fth_mem *mem = fth_context_mem(ctx);
    pt_block *b = NULL;
    fth_config *cfg = NULL;
    fth_answer a;
    if (n_args < 1) {
        FTH_FAIL(err, FTH_E_COMMAND, "the name of a building block is missing");
        fth_err_hint(err, "%s", usage);
        return FTH_E_COMMAND;
    }
    const pt_block_kind *kind = kind_of(arg[0], err);
    if (!kind) return FTH_E_COMMAND;
    if (n_args != (kind->no_input ? 2 : 3)) {
        FTH_FAIL(err, FTH_E_COMMAND, "%s: %s expected, found %d words", kind->name,
                 kind->no_input ? "OUT.npz is" : "IN.npz and OUT.npz are", n_args - 1);
        fth_err_hint(err, "%s", usage);
        return FTH_E_COMMAND;
    }
    FTH_TRY(pt_settings_read(&cfg, mem, value, user, err));
    fth_status s = fth_mem_take(mem, FTH_MEM_ANY, sizeof *b, "building block", (void **)&b, err);
    if (s == FTH_OK) s = fth_answer_begin(&a, ctx, value, user, out, err);
    if (s == FTH_OK) {
        memset(b, 0, sizeof *b);
        b->name = kind->name;
        b->ctx = ctx;
        b->mem = mem;
        b->cfg = cfg;
        b->in_path = kind->no_input ? NULL : arg[1];
        s = apply(b, kind, arg[n_args - 1], &a, err);
        clear(b);
        s = fth_answer_end(&a, s, err);
    }
    if (b) fth_mem_release(mem, b, NULL);
    fth_config_destroy(cfg, NULL);
    return s;
}

static const fth_flag flags[] = {
#define DATA(...) __VA_ARGS__,
#define SIMULATE(...) __VA_ARGS__,
#define LEARN(...) __VA_ARGS__,
#define BLOCK(...) __VA_ARGS__,
#include "../settings/flags.inc"
    {0}};

const fth_verb pt_verb_op = {
    .name = "op",
    .args = "NAME [IN.npz] OUT.npz",
    .brief = "apply one building block to the arrays of a file",
    .doc =
        "Reads arrays by name from an NPZ file, applies one operation of the instrument, and "
        "writes the results to another: for tests, and to find mistakes in data or in other "
        "programs. Axes have names; an axis of different sizes in two arrays is refused with both "
        "shapes.\n\n"
        "translate (images, offsets_xy -> out), merge (patches, coords_relative, M, probe -> "
        "merged), extract (region, coords_relative, N -> patches), diffract (obj, probe -> "
        "amplitude), loss (amplitude, observed_amp -> mae, nll), group (xcoords, ycoords -> "
        "idx, off, rel), stitch (patches, off, coords_relative, probe -> canvas, canvas_origin), "
        "probe and object (nothing "
        "-> probe, object: the default probe, an object, drawn at its own size), cnn (X -> amp, "
        "phase), "
        "step (X, coords_relative, probe -> loss, pred, grad_w, and grad.NAME of every "
        "parameter). cnn and step have weights by a formula: sin(0.37 k + 0.11 length of the "
        "name) 1.2 / sqrt(fan), and compute in double unless --precision single is given.",
    .max_args = 3,
    .flag = flags,
    .heeds = "seed plan json quiet",
    .run = run,
};
