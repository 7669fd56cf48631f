/* result.c - see result.h. */
#include "result.h"

#include "../figures/pictures.h"
#include "../recon/recon.h"
#include "../settings/settings.h"

#include <fathom/files.h>
#include <fathom/lines.h>

#include <math.h>

/* ---- reconstruction.npz ---- */

static fth_status put(fth_npz_writer *w, const char *name, const void *data, fth_err *err)
{
    fth_sink sink;
    FTH_TRY(fth_npz_sink(w, name, &sink, err));
    return fth_sink_put(&sink, data, err);
}

static fth_status write_arrays(const pt_result *r, const char *path, const char *config,
                               fth_err *err)
{
    const fth_file_item item[] = {
        {"reconstructed_object", FTH_C64, 2, {r->rows, r->cols}, NULL},
        {"reconstructed_probe", FTH_C64, 3, {r->modes, r->side, r->side}, NULL},
        {"positions", FTH_F64, 2, {r->patterns, 2}, NULL},
        {"canvas_origin", FTH_F64, 1, {2}, NULL},
        {"error_history", FTH_F64, 1, {r->n_errors}, NULL},
        {"opr_probes", FTH_C64, 3, {r->oprs, r->side, r->side}, NULL},
        {"opr_weights", FTH_F64, 2, {r->patterns, r->oprs + 1}, NULL},
    };
    const void *const data[] = {r->object, r->probe,      r->positions,  r->origin,
                                r->errors, r->opr_probes, r->opr_weights};
    const fth_file_meta text[] = {{"algorithm", r->algorithm}, {"config", config}};
    const int n = (int)(sizeof item / sizeof item[0]) - (r->oprs ? 0 : 2);
    fth_npz_writer *w = NULL;
    FTH_TRY(fth_npz_create_with_texts(&w, r->mem, path, item, n, text, 2, err));
    for (int i = 0; i < n; i++) {
        const fth_status s = put(w, item[i].name, data[i] ? data[i] : r->origin, err);
        if (s == FTH_OK) continue;
        fth_npz_abandon(w);
        return s;
    }
    return fth_npz_commit(w, err);
}

static fth_status write_reconstruction(const pt_result *r, const char *folder, fth_err *err)
{
    char path[FTH_PATH];
    fth_json_writer w;
    FTH_TRY(fth_path_join(path, folder, PT_RECONSTRUCTION_FILE, err));
    fth_json_begin(&w, r->mem, false);
    pt_settings_write(r->cfg, false, &w, NULL);
    fth_status s = fth_json_end(&w, err);
    if (s == FTH_OK) s = write_arrays(r, path, w.data, err);
    fth_json_free(&w);
    return s;
}

/* ---- the others ---- */

static fth_status write_errors(const pt_result *r, const char *folder, fth_err *err)
{
    char path[FTH_PATH];
    fth_lines t;
    FTH_TRY(fth_path_join(path, folder, PT_ERRORS_FILE, err));
    fth_lines_begin(&t, r->mem);
    fth_lines_add(&t, "epoch,R\n");
    for (int64_t i = 0; i < r->n_errors; i++) {
        fth_lines_add(&t, "%lld,", (long long)i + 1);
        fth_lines_real(&t, r->errors[i]);
        fth_lines_add(&t, "\n");
    }
    return fth_lines_save(&t, path, err);
}

static fth_status write_run(const pt_result *r, const char *folder, fth_err *err)
{
    char path[FTH_PATH];
    fth_json_writer w;
    FTH_TRY(fth_path_join(path, folder, PT_RUN_FILE, err));
    fth_json_begin(&w, r->mem, true);
    fth_json_open(&w, NULL, '{');
    fth_json_text(&w, "version", fth_version());
    fth_json_text(&w, "scan", r->scan);
    fth_json_text(&w, "algorithm", r->algorithm);
    fth_json_int(&w, "patterns", r->patterns);
    fth_json_int(&w, "rows", r->rows);
    fth_json_int(&w, "cols", r->cols);
    if (r->n_errors > 0) fth_json_real(&w, "R", r->errors[r->n_errors - 1]);
    pt_settings_write(r->cfg, true, &w, "config");
    fth_json_close(&w);
    return fth_json_save(&w, path, err);
}

fth_status pt_result_write(const pt_result *r, const char *folder, fth_err *err)
{
    FTH_TRY(write_errors(r, folder, err));
    FTH_TRY(write_run(r, folder, err));
    return write_reconstruction(r, folder, err);
}

fth_status pt_result_draw(fth_mem *mem, const fth_config *cfg, const char *folder, double pixel_m,
                          fth_err *err)
{
    char path[FTH_PATH];
    pt_recon r = {0};
    if (!fth_config_bool(cfg, "pictures")) return FTH_OK;
    FTH_TRY(fth_path_join(path, folder, PT_RECONSTRUCTION_FILE, err));
    fth_status s = pt_recon_open(&r, mem, path, err);
    if (s == FTH_OK) {
        pt_pictures p = pt_pictures_of(&r, mem);
        p.pixel_m = isfinite(pixel_m) ? pixel_m : 0;
        if (p.n_errors < 2) p.errors = NULL; /* one point makes no curve */
        s = pt_figures_reconstruction(&p, folder, NULL, err);
        pt_recon_close(&r);
    }
    if (s == FTH_E_BUDGET)
        fth_err_hint(err,
                     "%s is written; raise --memory, or leave pictures out with --pictures "
                     "false",
                     path);
    return s;
}

fth_status pt_result_files(const fth_stage_call *call, fth_file_list *list, fth_err *err)
{
    static const struct {
        const char *name, *title;
        fth_file_kind kind;
    } files[] = {{PT_RECONSTRUCTION_FILE, "object, probe, positions, errors", FTH_FILE_OUTPUT},
                 {PT_ERRORS_FILE, "R of each epoch", FTH_FILE_OUTPUT},
                 {PT_RUN_FILE, "settings", FTH_FILE_OUTPUT},
                 {PT_AMPLITUDE_PNG, "amplitude", FTH_FILE_FIGURE},
                 {PT_PHASE_PNG, "phase", FTH_FILE_FIGURE},
                 {PT_PROBE_PNG, "probe", FTH_FILE_FIGURE}};
    const bool pictures = fth_config_bool(call->config, "pictures");
    char path[FTH_PATH];
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        if (files[i].kind == FTH_FILE_FIGURE && !pictures) continue;
        FTH_TRY(fth_path_join(path, call->model_dir, files[i].name, err));
        FTH_TRY(fth_file_list_add(list, files[i].kind, path, files[i].title, err));
    }
    return FTH_OK;
}
