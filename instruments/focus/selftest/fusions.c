/* fusions.c - fusions of the small scene, compared with what they must give; see checks.h. */
#include "../info/crc.h"
#include "../settings/settings.h"
#include "checks.h"

#include <math.h>
#include <string.h>

#define FO_EXPECTED(name, dtype, options, lo, hi, stack, image, index, depth)                      \
    {name, FTH_##dtype, options, lo, hi, stack, image, index, depth},
const fo_expected fo_expected_table[] = {
#include "expected.def"
    {0}};
#undef FO_EXPECTED

enum { STACKS = 3 };
enum { IMAGE, LO, HI, INDEX, DEPTH, OUTS }; /* outputs of a fusion */
enum { STACK = OUTS, PRESENT, ARRAYS };     /* and its inputs */

/* Stacks, and what comes of them. */
typedef struct fusing {
    fth_context *ctx;
    fo_fusion how;
    fth_dtype dtype;
    int64_t n;                              /* stacks, all the same */
    float stacks[STACKS * FO_SCENE_PIXELS]; /* room for the widest dtype */
    uint8_t present[STACKS * FO_SCENE_Z];
    uint16_t image[STACKS * FO_SCENE_AREA], index[STACKS * FO_SCENE_AREA];
    float depth[STACKS * FO_SCENE_AREA];
    double lo[STACKS], hi[STACKS];
    bool has_index, has_depth;
    fth_run_report report;
    int64_t chunks;
} fusing;

/* ---- settings ---- */

/* The value of a flag in "method=log levels=3". */
typedef struct words {
    const char *text;
    char value[40];
} words;

static const char *value_of(void *user, const char *flag)
{
    words *w = user;
    const size_t n = strlen(flag);
    for (const char *at = w->text; *at;) {
        const size_t word = strcspn(at, " ");
        if (word > n && strncmp(at, flag, n) == 0 && at[n] == '=') {
            snprintf(w->value, sizeof w->value, "%.*s", (int)(word - n - 1), at + n + 1);
            return w->value;
        }
        at += word;
        at += *at == ' ';
    }
    return NULL;
}

static fth_status read_settings(fusing *f, const char *options, fth_err *err)
{
    words w = {.text = options};
    fth_config *cfg = NULL;
    FTH_TRY(fo_settings_from_flags(&cfg, fth_context_mem(f->ctx), true, value_of, &w, err));
    const int bits = 8 * (int)fth_dtype_size(f->dtype);
    fth_status s = fo_fusion_read(cfg, false, &(fo_pixels){0, bits}, &f->how, err);
    const fth_status closed = fth_config_destroy(cfg, s == FTH_OK ? err : NULL);
    if (s == FTH_OK) s = closed;
    f->how.want_depth =
        f->how.compat == FO_COMPAT_NONE &&
        (f->how.method == FO_LOG || f->how.method == FO_LOG_SMOOTH || f->how.method == FO_DEPTH);
    const fo_sizes sizes = {f->n, FO_SCENE_Z, FO_SCENE_Y, FO_SCENE_X};
    return s == FTH_OK ? fo_fusion_check(&f->how, &sizes, f->dtype, err) : s;
}

static void draw(fusing *f, const fo_test_scene *scene)
{
    memset(f->present, 1, sizeof f->present);
    for (int64_t i = 0; i < f->n * FO_SCENE_PIXELS; i++) {
        const uint16_t v = scene->pixels[i % FO_SCENE_PIXELS];
        if (f->dtype == FTH_U8)
            ((uint8_t *)(void *)f->stacks)[i] = (uint8_t)(v >> 4);
        else if (f->dtype == FTH_U16)
            ((uint16_t *)(void *)f->stacks)[i] = v;
        else
            f->stacks[i] = (float)v / 4096;
    }
}

/* ---- a run ---- */

static void release(fth_tensor *t[ARRAYS])
{
    for (int i = 0; i < ARRAYS; i++) fth_tensor_release(t[i]);
}

/* The arrays of a fusion, as devices read and write them. */
static fth_status wrap(fusing *f, fth_tensor *t[ARRAYS], fth_err *err)
{
    const int64_t picture[] = {f->n, FO_SCENE_Y, FO_SCENE_X},
                  stacks[] = {f->n, FO_SCENE_Z, FO_SCENE_Y, FO_SCENE_X};
    const struct array {
        const char *name;
        fth_dtype dtype;
        int n_axes;
        const int64_t *size;
        void *data;
    } arrays[ARRAYS] = {
        [IMAGE] = {"image", FTH_U16, 3, picture, f->image},
        [LO] = {"lo", FTH_F64, 1, picture, f->lo},
        [HI] = {"hi", FTH_F64, 1, picture, f->hi},
        [INDEX] = {"index", FTH_U16, 3, picture, f->index},
        [DEPTH] = {"depth", FTH_F32, 3, picture, f->depth},
        [STACK] = {"stacks", f->dtype, 4, stacks, f->stacks},
        [PRESENT] = {"present", FTH_U8, 2, stacks, f->present},
    };
    fth_mem *mem = fth_context_mem(f->ctx);
    for (int i = 0; i < ARRAYS; i++) {
        const struct array *a = &arrays[i];
        FTH_TRY(fth_tensor_wrap(&t[i], mem, a->name, a->dtype, a->n_axes, a->size, a->data, err));
    }
    return FTH_OK;
}

static fo_fused build(const fusing *f, fth_graph *g, fth_tensor *const t[ARRAYS])
{
    fth_axis(g, "stack", f->n);
    fth_axis(g, "z", FO_SCENE_Z);
    fth_axis(g, "y", FO_SCENE_Y);
    fth_axis(g, "x", FO_SCENE_X);
    return fo_fuse(g, fth_input(g, "stacks", f->dtype, "stack z y x", fth_tensor_source(t[STACK])),
                   fth_input(g, "present", FTH_U8, "stack z", fth_tensor_source(t[PRESENT])),
                   &f->how);
}

static fth_status run(fusing *f, fth_graph *g, fth_tensor *const t[ARRAYS], int64_t pieces,
                      fth_err *err)
{
    const fo_fused u = build(f, g, t);
    const fth_val value[OUTS] = {u.image, u.lo, u.hi, u.index, u.depth};
    fth_val out[OUTS];
    fth_sink sink[OUTS];
    int n = 0;
    FTH_TRY(fth_graph_check(g, err));
    f->has_index = fth_val_ok(u.index);
    f->has_depth = f->how.want_depth;
    for (int i = 0; i < OUTS; i++) {
        if ((i == INDEX && !f->has_index) || (i == DEPTH && !f->has_depth)) continue;
        out[n] = value[i];
        sink[n++] = fth_tensor_sink(t[i]);
    }
    const fth_limits limits = {
        .sinks = sink, .stream = pieces > 1 ? "stack" : NULL, .min_pieces = pieces};
    fth_plan *plan = fth_plan_make(g, out, n, &limits, err);
    if (!plan) return err->status;
    fth_plan_info info;
    fth_plan_get_info(plan, &info);
    f->chunks = info.chunks;
    const fth_status s = fth_run(plan, sink, NULL, &f->report, err);
    fth_plan_destroy(plan);
    return s;
}

/* With `pieces`, cut into as many. */
static fth_status fuse(fusing *f, int64_t pieces, fth_err *err)
{
    fth_tensor *t[ARRAYS] = {NULL};
    fth_status s = wrap(f, t, err);
    if (s == FTH_OK) {
        fth_graph *g = fth_graph_create(f->ctx);
        s = run(f, g, t, pieces, err);
        fth_graph_destroy(g);
    }
    release(t);
    return s;
}

/* ---- comparing ---- */

static void compare_crc(fo_checks *c, const char *name, const char *what, const void *data,
                        int64_t bytes, uint32_t want)
{
    char label[100];
    const uint32_t got = data ? fo_crc32(0, data, (uint64_t)bytes) : 0;
    if (want == 0 && got == 0) return;
    snprintf(label, sizeof label, "%s, %s", name, what);
    fo_check(c, label, got == want, "expected %08x, found %08x", want, got);
}

static bool near(double got, double want)
{
    return fabs(got - want) <= 1e-9 * fabs(want);
}

static fth_status check_row(fo_checks *c, fusing *f, const fo_test_scene *scene,
                            const fo_expected *e)
{
    fth_err err = {0};
    f->dtype = e->dtype;
    f->n = 1;
    draw(f, scene);
    fth_status s = read_settings(f, e->options, &err);
    if (s == FTH_OK) s = fuse(f, 0, &err);
    if (s != FTH_OK) return fo_check_failed(c, e->name, &err);
    const uint32_t stack =
        fo_crc32(0, f->stacks, (uint64_t)(FO_SCENE_PIXELS * fth_dtype_size(e->dtype)));
    if (stack != e->stack)
        fo_check(c, e->name, false, "the stack is %08x, not %08x", stack, e->stack);
    compare_crc(c, e->name, "image", f->image, FO_SCENE_AREA * 2, e->image);
    compare_crc(c, e->name, "index", f->has_index ? f->index : NULL, FO_SCENE_AREA * 2, e->index);
    compare_crc(c, e->name, "depth", f->has_depth ? f->depth : NULL, FO_SCENE_AREA * 4, e->depth);
    if (!near(f->lo[0], e->lo) || !near(f->hi[0], e->hi))
        fo_check(c, e->name, false, "black and white are %.17g and %.17g, not %.17g and %.17g",
                 f->lo[0], f->hi[0], e->lo, e->hi);
    return FTH_OK;
}

/* The deviation of the memory that was measured from what was planned, in percent; and whether the
 * runner found pages or growth beyond it. */
static void check_memory(fo_checks *c, const fusing *f)
{
    const double planned = (double)f->report.planned_bytes, used = (double)f->report.ledger_bytes;
    const double off = planned > 0 ? 100 * fabs(used - planned) / planned : used;
    fo_check(c, "memory as planned", off <= 5 && f->report.kept,
             "planned %.0f bytes, used %.0f (%.1f %% off), %s", planned, used, off,
             f->report.kept ? "within the limits" : "beyond the limits");
    if (f->report.on_device)
        fo_check(c, "kernels ran", f->report.device_seconds > 0, "the device ran no kernel");
}

/* Three stacks at once, and one after the other: the same bits as one alone. */
static fth_status check_pieces(fo_checks *c, fusing *f, const fo_test_scene *scene,
                               const fo_expected *e)
{
    uint16_t alone[FO_SCENE_AREA];
    fth_err err = {0};
    memcpy(alone, f->image, sizeof alone);
    f->dtype = e->dtype;
    f->n = STACKS;
    draw(f, scene);
    fth_status s = read_settings(f, e->options, &err);
    for (int64_t pieces = 0; s == FTH_OK && pieces <= STACKS; pieces += STACKS) {
        memset(f->image, 0, sizeof f->image);
        s = fuse(f, pieces, &err);
        if (s != FTH_OK) break;
        bool same = true;
        for (int i = 0; i < STACKS; i++)
            same = same && memcmp(f->image + i * FO_SCENE_AREA, alone, sizeof alone) == 0;
        same = same && (pieces == 0 || f->chunks >= pieces);
        fo_check(c, pieces ? "three stacks in chunks" : "three stacks at once", same,
                 "differs from one stack alone, or was not chunked (%lld chunks)",
                 (long long)f->chunks);
    }
    return s == FTH_OK ? FTH_OK : fo_check_failed(c, "three stacks", &err);
}

fth_status fo_check_fusions(fo_checks *c, fth_context *ctx, const fo_test_scene *scene,
                            const fo_expected *table, fth_err *err)
{
    fth_mem *mem = fth_context_mem(ctx);
    void *block = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, sizeof(fusing), "self-test", &block, err));
    fusing *f = memset(block, 0, sizeof *f);
    f->ctx = ctx;
    fth_status s = FTH_OK;
    for (const fo_expected *e = table; s == FTH_OK && e->name; e++) {
        s = check_row(c, f, scene, e);
        if (s == FTH_OK && strcmp(e->options, "method=log-smooth") == 0 && e->dtype == FTH_U16) {
            s = check_pieces(c, f, scene, e);
            check_memory(c, f);
        }
    }
    fth_mem_release(mem, block, NULL);
    if (s == FTH_E_CANCELLED) return FTH_FAIL(err, s, "the self-test was cancelled");
    return s;
}
