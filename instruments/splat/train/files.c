/* files.c - what a training leaves in its folder; see work.h. */
#include "work.h"

#include "../eval/eval.h"
#include "../file/plural.h"
#include "../model/sog.h"
#include "../scene/cameras.h"
#include "../view/view.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const double apart_s = 0.5; /* between two writes of loss.csv */

fth_status gs_work_path(const gs_work *w, const char *name, char path[FTH_PATH], fth_err *err)
{
    return fth_path_join(path, w->job->folder, name, err);
}

fth_status gs_work_write_config(const gs_work *w, fth_err *err)
{
    char path[FTH_PATH];
    fth_json_writer j;
    FTH_TRY(gs_work_path(w, GS_CONFIG_FILE, path, err));
    fth_json_begin(&j, w->mem, true);
    fth_json_open(&j, NULL, '{');
    gs_settings_write(w->job->cfg, w->state.rows.degree, &j, "optimization");
    fth_json_open(&j, "dataset", '{');
    fth_json_text(&j, "data_path", w->job->data);
    fth_json_text(&j, "format", w->scene.format);
    fth_json_int(&j, "views", w->scene.views);
    fth_json_int(&j, "train_views", w->trains);
    fth_json_int(&j, "test_views", w->tests);
    fth_json_real(&j, "scene_scale", w->state.scale);
    fth_json_hash(&j, "fingerprint", w->origin.data);
    fth_json_close(&j);
    fth_json_text(&j, "library", fth_version());
    fth_json_close(&j);
    return fth_json_save(&j, path, err);
}

/* ---- loss.csv ---- */

fth_status gs_work_open_losses(gs_work *w, fth_err *err)
{
    static const char head[] = "iteration,view,loss,l1,ssim,num_gaussians\n";
    char path[FTH_PATH];
    FTH_TRY(gs_work_path(w, GS_LOSS_FILE, path, err));
    fth_lines_begin(&w->lines, w->mem);
    FTH_TRY(fth_file_open_update(&w->losses, w->mem, path, err));
    const bool few = fth_file_bytes(w->losses) < (uint64_t)w->state.losses;
    if (few && w->job->resume) { /* --resume works without the loss.csv of the checkpoint */
        gs_say(w, "warning: %s lacks rows up to iteration %" PRId64 " and begins anew", path,
               w->state.iteration);
        w->state.losses = 0;
    } else if (few) {
        FTH_FAIL(err, FTH_E_FILE_SHORT,
                 "%s: expected %" PRId64 " bytes, as the checkpoint says, found %" PRIu64, path,
                 w->state.losses, fth_file_bytes(w->losses));
        fth_err_hint(err, "--fresh starts over");
        return FTH_E_FILE_SHORT;
    }
    FTH_TRY(fth_file_resize(w->losses, (uint64_t)w->state.losses, err));
    if (w->state.losses > 0) return FTH_OK;
    fth_lines_add(&w->lines, "%s", head);
    return gs_work_write_losses(w, err);
}

fth_status gs_work_write_losses(gs_work *w, fth_err *err)
{
    fth_lines *l = &w->lines;
    FTH_TRY(l->status == FTH_OK
                ? FTH_OK
                : FTH_FAIL(err, l->status, "no memory for a line of " GS_LOSS_FILE));
    w->written_s = gs_now();
    if (l->used == 0) return FTH_OK;
    FTH_TRY(fth_file_write(w->losses, (uint64_t)w->state.losses, (uint64_t)l->used, l->data, "rows",
                           err));
    w->state.losses += l->used;
    fth_lines_free(l);
    fth_lines_begin(l, w->mem);
    return FTH_OK;
}

fth_status gs_work_add_loss(gs_work *w, int64_t view, fth_err *err)
{
    const gs_step *s = &w->step;
    fth_lines *l = &w->lines;
    fth_lines_add(l, "%" PRId64 ",%" PRId64 ",", w->state.iteration, view);
    fth_lines_real(l, s->loss[0]);
    fth_lines_add(l, ",");
    fth_lines_real(l, s->loss[2]);
    fth_lines_add(l, ",");
    fth_lines_real(l, s->loss[3]);
    fth_lines_add(l, ",%" PRId64 "\n", w->state.rows.n);
    return gs_now() - w->written_s > apart_s ? gs_work_write_losses(w, err) : FTH_OK;
}

/* ---- memory.csv: what was planned and what the ledger counted, whenever plans changed ---- */

/* Views of several sizes take turns with their plans: only the largest is of interest. */
fth_status gs_work_add_memory(gs_work *w, fth_err *err)
{
    if (w->noted_rows == w->state.rows.n && w->step.planned_bytes <= w->noted_bytes) return FTH_OK;
    w->noted_rows = w->state.rows.n;
    w->noted_bytes = w->step.planned_bytes;
    char path[FTH_PATH], text[240];
    FTH_TRY(gs_work_path(w, GS_MEMORY_FILE, path, err));
    const bool first = !fth_path_exists(path);
    snprintf(text, sizeof text, "%s%" PRId64 ",%" PRId64 ",%" PRIu64 ",%" PRIu64 "\n",
             first ? "iteration,num_gaussians,planned_bytes,ledger_bytes\n" : "",
             w->state.iteration, w->state.rows.n, w->step.planned_bytes, w->step.ledger_bytes);
    return fth_file_append(w->mem, path, text, strlen(text), err);
}

/* ---- models and checkpoints ---- */

/* The first row of a parameter that has one. */
static fth_status find_row(const gs_rows *rows, int attribute, int64_t *row, fth_err *err)
{
    enum { ROWS = 1 << 14 };
    fth_mem *mem = fth_context_mem(rows->context);
    const int64_t columns = gs_columns((gs_attribute)attribute, rows->degree);
    void *block = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)(ROWS * columns) * sizeof(float),
                         "rows to look at", &block, err));
    const float *at = block;
    fth_status s = FTH_OK;
    *row = -1;
    for (int64_t from = 0; s == FTH_OK && *row < 0 && from < rows->n; from += ROWS) {
        const int64_t n = rows->n - from < ROWS ? rows->n - from : ROWS;
        s = fth_tensor_get_rows(rows->tensor[GS_VALUE][attribute], from, n, block, err);
        for (int64_t i = 0; s == FTH_OK && *row < 0 && i < n * columns; i++)
            if (!isfinite(at[i])) *row = from + i / columns;
    }
    (void)fth_mem_release(mem, block, NULL);
    return s;
}

fth_status gs_rows_find_bad(gs_rows *rows, gs_bad *bad, fth_err *err)
{
    int64_t count[GS_ATTRIBUTES];
    *bad = (gs_bad){0};
    FTH_TRY(gs_rows_count_bad(rows, count, err));
    while (bad->attribute < GS_ATTRIBUTES && count[bad->attribute] == 0) bad->attribute++;
    if (bad->attribute == GS_ATTRIBUTES) return FTH_OK;
    bad->count = count[bad->attribute];
    return find_row(rows, bad->attribute, &bad->row, err);
}

static fth_status check_finite(gs_work *w, fth_err *err)
{
    gs_bad bad;
    FTH_TRY(gs_rows_find_bad(&w->state.rows, &bad, err));
    if (bad.count == 0) return FTH_OK;
    FTH_FAIL(err, FTH_E_NUMERIC,
             "iteration %" PRId64 ": %" PRId64 " numbers of %s are not finite, the first in row "
             "%" PRId64 " of %" PRId64,
             w->state.iteration, bad.count, gs_attribute_names[bad.attribute], bad.row,
             w->state.rows.n);
    fth_err_hint(
        err, "the checkpoint, if there is one, has the last good state; lower the learning rates");
    return FTH_E_NUMERIC;
}

/* Views with their refined poses, where poses are trained. */
static fth_status save_cameras(const gs_work *w, fth_err *err)
{
    char path[FTH_PATH], name[64];
    void *block = NULL;
    if (w->poses.kind == GS_POSE_NONE) return FTH_OK;
    snprintf(name, sizeof name, "cameras_%" PRId64 ".json", w->state.iteration);
    FTH_TRY(gs_work_path(w, name, path, err));
    FTH_TRY(fth_mem_take(w->mem, FTH_MEM_ANY, (uint64_t)w->scene.views * sizeof(gs_view),
                         "refined cameras", &block, err));
    gs_view *view = block;
    for (int64_t v = 0; v < w->scene.views; v++)
        gs_poses_view(&w->poses, v, &w->scene.view[v], &view[v]);
    const fth_status s = gs_scene_write_cameras(&w->scene, view, path, err);
    (void)fth_mem_release(w->mem, block, NULL);
    return s;
}

/* Models in other formats: SOG goes where LichtFeld puts it. */
static const struct {
    const char *folder, *after;
} exports[GS_EXPORTS] = {[GS_FORMAT_PLY] = {"", ".ply"},
                         [GS_FORMAT_SPLAT] = {"", ".splat"},
                         [GS_FORMAT_SPZ] = {"", ".spz"},
                         [GS_FORMAT_SOG] = {"sog/", "_sog.sog"},
                         [GS_EXPORT_PAGE] = {"", ".html"}};

/* Those that are asked for. */
static fth_status export_model(const gs_work *w, const gs_model *m, fth_err *err)
{
    char path[FTH_PATH], name[64];
    if (w->set.exports[GS_FORMAT_SOG]) {
        FTH_TRY(gs_work_path(w, "sog", path, err));
        FTH_TRY(fth_folder_make_all(w->mem, path, err));
    }
    for (int f = GS_FORMAT_PLY + 1; f < GS_EXPORTS; f++) {
        if (!w->set.exports[f]) continue;
        snprintf(name, sizeof name, "%ssplat_%" PRId64 "%s", exports[f].folder, w->state.iteration,
                 exports[f].after);
        FTH_TRY(gs_work_path(w, name, path, err));
        if (f == GS_EXPORT_PAGE)
            FTH_TRY(gs_view_save(m, path, err));
        else if (f == GS_FORMAT_SOG)
            FTH_TRY(gs_sog_save(m, path, w->set.sog_rounds, err));
        else
            FTH_TRY(gs_model_save(m, path, (gs_format)f, err));
    }
    return FTH_OK;
}

static fth_status bring(void *self, int64_t from, int64_t some, gs_model *to, fth_err *err)
{
    return gs_rows_get(self, from, some, to, err);
}

static bool exports_any(const gs_work *w)
{
    for (int f = GS_FORMAT_PLY + 1; f < GS_EXPORTS; f++)
        if (w->set.exports[f]) return true;
    return false;
}

/* Rows of the device alone are whole on the host while other formats are written. */
static fth_status export_rows(gs_work *w, const gs_model *m, fth_err *err)
{
    gs_model copy;
    if (!exports_any(w)) return FTH_OK;
    if (!(w->state.rows.flags & GS_ROWS_DEVICE)) return export_model(w, m, err);
    FTH_TRY(gs_rows_fetch(&w->state.rows, &copy, err));
    const fth_status s = export_model(w, &copy, err);
    gs_model_free(&copy);
    return s;
}

fth_status gs_work_save_model(gs_work *w, fth_err *err)
{
    char path[FTH_PATH], name[64];
    gs_rows *rows = &w->state.rows;
    gs_model m;
    FTH_TRY(check_finite(w, err));
    snprintf(name, sizeof name, "splat_%" PRId64 ".ply", w->state.iteration);
    FTH_TRY(gs_work_path(w, name, path, err));
    FTH_TRY(gs_rows_model(rows, &m, err));
    FTH_TRY(export_rows(w, &m, err));
    FTH_TRY(save_cameras(w, err));
    FTH_TRY(rows->flags & GS_ROWS_DEVICE
                ? gs_ply_save_pieces(w->mem, path, rows->n, rows->degree, bring, rows, err)
                : gs_model_save(&m, path, GS_FORMAT_PLY, err));
    gs_say(w, "%s: %" PRId64 " Gaussian%s", path, m.n, gs_s(m.n));
    return FTH_OK;
}

fth_status gs_work_save_state(gs_work *w, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(check_finite(w, err));
    FTH_TRY(gs_work_write_losses(w, err));
    FTH_TRY(fth_file_sync(w->losses, err));
    FTH_TRY(gs_work_path(w, GS_CHECKPOINT_FILE, path, err));
    return gs_state_save(&w->state, &w->origin, path, err);
}

/* ---- starting over ---- */

/* "<before><iteration><after>", as it is written: without zeros before the number. */
static bool is_numbered(const char *name, const char *before, const char *after)
{
    const size_t n = strlen(before);
    if (strncmp(name, before, n) != 0) return false;
    const size_t digits = strspn(name + n, "0123456789");
    return digits > 0 && (digits == 1 || name[n] != '0') && strcmp(name + n + digits, after) == 0;
}

fth_status gs_work_is_same(const gs_work *w, const char *one, const char *other, bool *same,
                           fth_err *err)
{
    const fth_path_use use[2] = {{FTH_FILE_INPUT, "one", one}, {FTH_FILE_OUTPUT, "other", other}};
    fth_err local = {0};
    const fth_status s = fth_paths_check(use, 2, w->mem, &local);
    *same = s == FTH_E_FILE_WRITE;
    if (s == FTH_OK || *same) return FTH_OK;
    if (err) *err = local;
    return s;
}

/* The model that the training starts from stays, wherever it lies. */
static fth_status remove_result(const gs_work *w, const char *name, fth_err *err)
{
    char path[FTH_PATH];
    bool start = false;
    FTH_TRY(gs_work_path(w, name, path, err));
    FTH_TRY(gs_work_is_same(w, w->set.init_ply, path, &start, err));
    if (start) return FTH_OK;
    return fth_path_kind_of(path) == FTH_PATH_FOLDER ? fth_folder_remove(w->mem, path, err)
                                                     : fth_path_remove(w->mem, path, err);
}

static bool is_result(const char *folder, const char *name)
{
    for (int f = 0; f < GS_EXPORTS; f++)
        if (exports[f].after && strcmp(exports[f].folder, folder) == 0 &&
            is_numbered(name, "splat_", exports[f].after))
            return true;
    return folder[0] == 0 &&
           (is_numbered(name, "cameras_", ".json") || is_numbered(name, "eval_step_", ""));
}

static fth_status remove_numbered(const gs_work *w, const char *folder, fth_err *err)
{
    char path[FTH_PATH];
    fth_texts *list = NULL;
    FTH_TRY(gs_work_path(w, folder, path, err));
    if (fth_path_kind_of(path) != FTH_PATH_FOLDER) return FTH_OK;
    FTH_TRY(fth_folder_list(&list, w->mem, path, err));
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < fth_texts_count(list); i++) {
        char name[FTH_PATH];
        if (!is_result(folder, fth_texts_get(list, i))) continue;
        snprintf(name, sizeof name, "%s%s", folder, fth_texts_get(list, i));
        s = remove_result(w, name, err);
    }
    fth_texts_free(list);
    return s;
}

fth_status gs_work_remove_results(const gs_work *w, fth_err *err)
{
    /* the checkpoint first: if this is killed, the next run starts over as well */
    static const char *const names[] = {GS_CHECKPOINT_FILE, GS_METRICS_FILE, GS_VIEWS_FILE,
                                        GS_REPORT_FILE};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        FTH_TRY(remove_result(w, names[i], err));
    FTH_TRY(remove_numbered(w, "", err));
    FTH_TRY(remove_numbered(w, exports[GS_FORMAT_SOG].folder, err));
    return gs_work_remove_timelapse(w, err);
}

/* ---- temporary files of killed trainings ---- */

static bool is_one_of(const char *name, const char *const *list)
{
    while (*list && strcmp(name, *list) != 0) list++;
    return *list != NULL;
}

/* Of the folder itself others may write files, so those of a training are known by their names. */
static bool is_own_file(const char *name)
{
    static const char *const names[] = {GS_CONFIG_FILE, GS_METRICS_FILE, GS_VIEWS_FILE,
                                        GS_REPORT_FILE, NULL};
    return is_one_of(name, names) || is_result("", name);
}

static bool is_own_folder(const char *name)
{
    static const char *const names[] = {"checkpoints", "sog", "timelapse", NULL};
    return is_one_of(name, names) || is_numbered(name, "eval_step_", "");
}

/* NAME of ".NAME.PID-TIME.tmp"; false: it is no temporary file. */
static bool name_of(const char *entry, char name[FTH_PATH])
{
    static const char end[] = ".tmp";
    const size_t n = strlen(entry), k = sizeof end - 1;
    if (entry[0] != '.' || n < k + 2 || strcmp(entry + n - k, end) != 0) return false;
    snprintf(name, FTH_PATH, "%.*s", (int)(n - k - 1), entry + 1);
    char *dot = strrchr(name, '.');
    if (dot) *dot = '\0';
    return dot && name[0];
}

static fth_status remove_leftovers(const gs_work *w, const char *folder, int depth, fth_err *err)
{
    enum { MOST_DEPTH = 16 };
    char name[FTH_PATH], path[FTH_PATH];
    fth_texts *list = NULL;
    FTH_TRY(fth_folder_list(&list, w->mem, folder, err));
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < fth_texts_count(list); i++) {
        const char *entry = fth_texts_get(list, i);
        int64_t count = 0;
        if (name_of(entry, name)) {
            if (depth == 0 && !is_own_file(name)) continue;
            s = fth_path_join(path, folder, name, err);
            if (s == FTH_OK) s = fth_remains_remove(w->mem, path, &count, err);
        } else if (depth < MOST_DEPTH && (depth > 0 || is_own_folder(entry))) {
            s = fth_path_join(path, folder, entry, err);
            if (s == FTH_OK && fth_path_kind_of(path) == FTH_PATH_FOLDER)
                s = remove_leftovers(w, path, depth + 1, err);
        }
    }
    fth_texts_free(list);
    return s;
}

fth_status gs_work_remove_leftovers(const gs_work *w, fth_err *err)
{
    return remove_leftovers(w, w->job->folder, 0, err);
}
