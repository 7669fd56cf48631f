/* verb.c - `fathom ptycho simulate [OUT.npz]`. */
#include "simulate.h"

#include "../scan/write.h"
#include "../settings/verb.h"

#include <math.h>
#include <string.h>

fth_status pt_simulation_write(fth_context *ctx, const fth_stage_call *call, const fth_config *cfg,
                               bool test, const char *path, fth_err *err)
{
    fth_mem *mem = fth_context_mem(ctx);
    const double unknown = (double)NAN;
    pt_simulation m;
    fth_json_writer json = {0};
    fth_npz_writer *w = NULL;
    fth_sink patterns;
    double scale = 0;
    FTH_TRY(pt_simulation_make(&m, ctx, cfg, test, err));
    /* the scale goes into the metadata, which is written first */
    fth_err local = {0};
    scale = pt_intensity_scale(ctx, &m, &local);
    const pt_metadata about = {.nphotons = m.nphotons,
                               .N = m.N,
                               .gridsize = fth_config_int(cfg, "gridsize"),
                               .seed = fth_config_int(cfg, "seed"),
                               .n_images = m.n,
                               .script = "fathom ptycho simulate",
                               .object_kind = fth_config_text(cfg, "object"),
                               .probe_kind = fth_config_has(cfg, "probe_file") ? "file" : "default",
                               .scan_kind = fth_config_text(cfg, "scan"),
                               .intensity_scale = m.counts ? 1 : scale,
                               .energy_eV = pt_real_of(cfg, "energy_eV", unknown),
                               .distance_m = pt_real_of(cfg, "distance_m", unknown),
                               .detector_pixel_m = pt_real_of(cfg, "detector_pixel_m", unknown)};
    fth_status s = pt_metadata_make(mem, &about, &json, err);
    if (s == FTH_OK) {
        const pt_scan_arrays arrays = {.n = m.n,
                                       .N = m.N,
                                       .kind = PT_AMPLITUDE,
                                       .dtype = FTH_F32,
                                       .x = m.x,
                                       .y = m.y,
                                       .modes = m.modes,
                                       .probe = m.probe,
                                       .object = {.kind = "memory",
                                                  .dtype = FTH_C128,
                                                  .n_axes = 2,
                                                  .size = {m.rows, m.cols},
                                                  .data = m.object},
                                       .metadata = json.data};
        s = pt_scan_write_npz(&w, mem, path, &arrays, &patterns, err);
    }
    if (s == FTH_OK) s = pt_simulate(ctx, call, &m, &patterns, &scale, err);
    if (s == FTH_OK)
        s = fth_npz_commit(w, err);
    else
        fth_npz_abandon(w);
    fth_json_free(&json);
    pt_simulation_free(&m, mem);
    return s;
}

static fth_status make_file(fth_context *ctx, const fth_config *cfg, const char *given,
                            fth_answer *a, fth_err *err)
{
    char path[FTH_PATH], folder[FTH_PATH];
    pt_simulation sizes;
    FTH_TRY(pt_simulation_sizes(&sizes, ctx, cfg, false, err));
    const int64_t n = sizes.n, N = sizes.N;
    if (given)
        snprintf(path, sizeof path, "%s", given);
    else
        FTH_TRY(fth_path_join(path, fth_config_text(cfg, "output_dir"), "scan.npz", err));
    fth_answer_file(a, FTH_FILE_OUTPUT, path, a->plan ? n * N * N * 4 : -1,
                    "scan, f32 %lld x %lld x %lld", (long long)n, (long long)N, (long long)N);
    if (a->plan) {
        fth_graph *g = NULL;
        fth_plan *plan = pt_simulation_plan(ctx, &sizes, &g, err);
        const fth_status s = plan ? fth_answer_plan(a, "patterns", plan, err) : err->status;
        fth_answer_memory(a, pt_simulation_bytes(&sizes, cfg),
                          "object, probe, positions and blurs");
        fth_plan_destroy(plan);
        fth_graph_destroy(g);
        return s;
    }
    FTH_TRY(fth_path_parent(folder, path, err));
    FTH_TRY(fth_folder_make_all(fth_context_mem(ctx), folder, err));
    FTH_TRY(pt_simulation_write(ctx, NULL, cfg, false, path, err));
    fprintf(a->notes, "%s: %lld patterns\n", path, (long long)n);
    if (a->json) {
        fth_json_int(fth_answer_facts(a), "patterns", n);
        fth_json_text(fth_answer_facts(a), "scan", path);
    }
    return FTH_OK;
}

static fth_status work(const pt_call *call, fth_err *err)
{
    return make_file(call->ctx, call->cfg, call->n_args ? call->arg[0] : NULL, call->answer, err);
}

PT_RUN(-1, NULL, NULL, work)

static const fth_flag flags[] = {
#define DATA(...) __VA_ARGS__,
#define SIMULATE(...) __VA_ARGS__,
#include "../settings/flags.inc"
    {.name = "out", .value = FTH_FLAG_DIR, .doc = "folder of scan.npz when OUT is not given"}, {0}};

const fth_verb pt_verb_simulate = {
    .name = "simulate",
    .args = "[OUT.npz]",
    .brief = "simulate a scan: object, probe, positions and counted photons",
    .doc = "Writes an NPZ file in the layout of PtychoPINN, with the object as objectGuess. "
           "Positions and objects are drawn as in PtychoPINN, the noise is a function of (seed, "
           "pattern, pixel): the same for every budget and number of threads.\n"
           "\n"
           "With --units compat patterns are the square roots of counts divided by the intensity "
           "scale, as PtychoPINN keeps them; with --units counts they are undivided.",
    .max_args = 1,
    .flag = flags,
    .heeds = "seed plan json quiet",
    .run = run};
