/* view.c - see view.h. */
#include "view.h"

#include "../figures/pictures.h"
#include "../recon/recon.h"
#include "../scan/scan.h"
#include "../settings/verb.h"

#include <math.h>
#include <stdio.h>

#define PATTERNS_PNG "patterns.png"
enum { MOST_PATTERNS = 16, FEW_PATTERNS = 4 };

typedef struct viewing {
    fth_context *ctx;
    fth_mem *mem;
    const fth_config *cfg;
    const char *path, *folder;
    fth_answer *a;
} viewing;

/* A picture that was drawn, or would be. */
static fth_status tell(const viewing *v, const char *name, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(fth_path_join(path, v->folder, name, err));
    fth_answer_file(v->a, FTH_FILE_OUTPUT, path, -1, NULL);
    return FTH_OK;
}

/* The largest figure, with what it is drawn from, in whole pages. */
static fth_status check_room(const viewing *v, uint64_t bytes, fth_err *err)
{
    char what[FTH_PATH + 40];
    snprintf(what, sizeof what, "drawing figures of %s", v->path);
    return fth_mem_check_room(v->mem, bytes + 4096, what, err);
}

static fth_status draw(const viewing *v, const pt_pictures *p, fth_err *err)
{
    uint64_t bytes = 0;
    if (p->object) FTH_TRY(tell(v, PT_AMPLITUDE_PNG, err));
    if (p->object) FTH_TRY(tell(v, PT_PHASE_PNG, err));
    if (p->probe) FTH_TRY(tell(v, PT_PROBE_PNG, err));
    if (p->errors) FTH_TRY(tell(v, PT_ERRORS_PNG, err));
    if (p->x && p->probe) FTH_TRY(tell(v, PT_OVERLAP_PNG, err));
    FTH_TRY(pt_figures_reconstruction(p, v->folder, &bytes, err));
    if (v->a->plan) {
        fth_mem_stats stats;
        fth_mem_get_stats(v->mem, &stats);
        fth_answer_memory(v->a, bytes + stats.used_bytes, "one figure at a time");
        return FTH_OK;
    }
    FTH_TRY(check_room(v, bytes, err));
    FTH_TRY(fth_folder_make_all(v->mem, v->folder, err));
    return pt_figures_reconstruction(p, v->folder, NULL, err);
}

static void set_limits(const viewing *v, pt_pictures *p)
{
    p->phase_low = pt_real_of(v->cfg, "vmin", 0);
    p->phase_high = pt_real_of(v->cfg, "vmax", 0);
}

/* ---- a reconstruction ---- */

static fth_status view_recon(const viewing *v, fth_err *err)
{
    pt_recon r;
    FTH_TRY(pt_recon_open(&r, v->mem, v->path, err));
    pt_pictures p = pt_pictures_of(&r, v->mem);
    set_limits(v, &p);
    fth_answer_file(v->a, FTH_FILE_INPUT, r.path, -1, "object %lld x %lld",
                    (long long)r.object.rows, (long long)r.object.cols);
    const fth_status s = draw(v, &p, err);
    pt_recon_close(&r);
    return s;
}

/* ---- a scan ---- */

/* Which patterns: those that were asked for, or a few spread over the scan. */
static fth_status choose(const viewing *v, const pt_scan *scan, int64_t *number, int64_t *n,
                         fth_err *err)
{
    *n = fth_config_has(v->cfg, "show_patterns") ? fth_config_count(v->cfg, "show_patterns") : 0;
    if (*n > MOST_PATTERNS)
        return FTH_FAIL(err, FTH_E_COMMAND, "--show_patterns: at most %d patterns, not %lld",
                        (int)MOST_PATTERNS, (long long)*n);
    for (int64_t i = 0; i < *n; i++) {
        number[i] = fth_config_int_at(v->cfg, "show_patterns", i);
        if (number[i] >= scan->n)
            return FTH_FAIL(err, FTH_E_COMMAND,
                            "--show_patterns: pattern %lld of %s, which has %lld, counted from 0",
                            (long long)number[i], scan->path, (long long)scan->n);
    }
    if (*n > 0) return FTH_OK;
    *n = scan->n < FEW_PATTERNS ? scan->n : FEW_PATTERNS;
    for (int64_t i = 0; i < *n; i++) number[i] = i * (scan->n - 1) / (*n > 1 ? *n - 1 : 1);
    return FTH_OK;
}

static fth_status view_patterns(const viewing *v, pt_scan *scan, fth_err *err)
{
    int64_t number[MOST_PATTERNS], n;
    fth_source source;
    fth_tensor *t = NULL;
    char path[FTH_PATH];
    uint64_t bytes = 0;
    const int64_t one[3] = {1, scan->N, scan->N};
    FTH_TRY(choose(v, scan, number, &n, err));
    FTH_TRY(tell(v, PATTERNS_PNG, err));
    FTH_TRY(fth_path_join(path, v->folder, PATTERNS_PNG, err));
    FTH_TRY(pt_scan_view(scan, PT_AMPLITUDE, FTH_F32, &source, err));
    const int64_t size[3] = {n, scan->N, scan->N};
    FTH_TRY(fth_tensor_create(&t, v->mem, "patterns", FTH_F32, 3, size, err));
    float *to = fth_tensor_data(t);
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < n; i++)
        s = source.read(source.self, (int64_t[]){number[i], 0, 0}, one, to + i * scan->N * scan->N,
                        err);
    if (s == FTH_OK)
        s = pt_draw_patterns(v->mem, to, FTH_F32, scan->N, number, n, path, &bytes, err);
    if (s == FTH_OK && !v->a->plan) s = check_room(v, bytes, err);
    if (s == FTH_OK && !v->a->plan) s = fth_folder_make_all(v->mem, v->folder, err);
    if (s == FTH_OK && !v->a->plan)
        s = pt_draw_patterns(v->mem, to, FTH_F32, scan->N, number, n, path, NULL, err);
    (void)fth_tensor_release(t);
    return s;
}

static fth_status view_scan(const viewing *v, fth_err *err)
{
    pt_scan scan;
    pt_scan_options opt;
    fth_tensor *object = NULL;
    pt_scan_options_read(v->cfg, &opt);
    FTH_TRY(pt_scan_open(&scan, v->ctx, v->path, &opt, err));
    fth_answer_file(v->a, FTH_FILE_INPUT, v->path, -1, "%lld patterns of %lld x %lld",
                    (long long)scan.n, (long long)scan.N, (long long)scan.N);
    fth_status s = view_patterns(v, &scan, err);
    if (s == FTH_OK) s = pt_scan_load_object(&scan, &object, err);
    if (s == FTH_OK) {
        const pt_extent e = pt_scan_extent(scan.x, scan.y, scan.n);
        pt_pictures p = {.mem = v->mem,
                         .object = object ? fth_tensor_data(object) : NULL,
                         .object_dtype = FTH_C128,
                         .probe = scan.modes ? scan.probe : NULL,
                         .probe_dtype = FTH_C128,
                         .modes = scan.modes,
                         .side = scan.N,
                         .x = scan.x,
                         .y = scan.y,
                         .n_patterns = scan.n,
                         .pixel_m = isfinite(scan.meta.pixel_m) ? scan.meta.pixel_m : 0};
        if (object) {
            p.rows = fth_tensor_size(object, 0);
            p.cols = fth_tensor_size(object, 1);
        } else { /* the part that is lit */
            p.origin_x = floor(e.min_x) - (double)(scan.N / 2);
            p.origin_y = floor(e.min_y) - (double)(scan.N / 2);
            p.cols = (int64_t)ceil(e.max_x - e.min_x) + scan.N;
            p.rows = (int64_t)ceil(e.max_y - e.min_y) + scan.N;
        }
        set_limits(v, &p);
        s = draw(v, &p, err);
    }
    (void)fth_tensor_release(object);
    pt_scan_close(&scan);
    return s;
}

/* ---- the verb ---- */

static fth_status work(const pt_call *call, fth_err *err)
{
    viewing v = {.ctx = call->ctx,
                 .mem = fth_context_mem(call->ctx),
                 .cfg = call->cfg,
                 .path = call->arg[0],
                 .folder = fth_config_text(call->cfg, "output_dir"),
                 .a = call->answer};
    FTH_TRY(pt_has_patterns(v.mem, v.path) ? view_scan(&v, err) : view_recon(&v, err));
    if (!v.a->plan) fprintf(v.a->notes, "figures are in %s\n", v.folder);
    return FTH_OK;
}

PT_RUN(1, "one file is", "fathom ptycho view FILE --out DIR", work)

static const fth_flag flags[] = {
    {.name = "out", .value = FTH_FLAG_DIR, .doc = "folder of the figures (output_dir)"},
#define DATA(...) __VA_ARGS__,
#define EVALUATE(...) __VA_ARGS__,
#include "../settings/flags.inc"
    {0}};

const fth_verb pt_verb_view = {
    .name = "view",
    .args = "FILE",
    .brief = "draw a scan or a reconstruction",
    .doc = "For a reconstruction: reconstructed_amplitude.png, reconstructed_phase.png, probe.png, "
           "errors.png and overlap.png, as far as the file holds them.\n"
           "\n"
           "For a scan: patterns.png (four of them, or those of --show_patterns 0,10,20), "
           "probe.png, overlap.png, and the object if there is one.",
    .max_args = 1,
    .flag = flags,
    .heeds = "plan json quiet seed",
    .run = run};
