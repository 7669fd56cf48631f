/* before.c - see before.h. */
#include "before.h"

#include "record.h"

#include <inttypes.h>
#include <string.h>

/* ---- settings ---- */

static bool is_one_of(const char *key, const char *const *keys)
{
    while (*keys && strcmp(*keys, key) != 0) keys++;
    return *keys != NULL;
}

/* Whether the pixels of an image depend on the other images of its batch. */
static bool is_together(const fo_job *e)
{
    return fo_job_is_tiled(e) || fth_config_choice(e->cfg, "focus.compat") == 1 ||
           strcmp(fth_config_text(e->cfg, "focus.scale"), "experiment") == 0;
}

/* Keys of paths, of the selection, and of the mapping to wells, which is compared separately. With
 * --overwrite-stitch, also those that change mosaics and not tiles. */
static bool is_no_setting(const void *user, const char *key)
{
    static const char *const places[] = {"input.data_root", /* these three go together */
                                         "input.exp",
                                         "input.microscope",
                                         "focus.map",
                                         "focus.ref_xy",
                                         "focus.allow_duplicate_wells",
                                         "focus.fix_time_jumps",
                                         "focus.metrics",
                                         NULL};
    static const char *const choice[] = {"focus.wells", "focus.times", NULL};
    static const char *const mosaics[] = {"focus.overlap", "focus.blend",    "focus.orientation",
                                          "focus.grid",    "focus.polarity", NULL};
    const fo_job *e = user;
    if (is_one_of(key, places) || strncmp(key, "slurm.", 6) == 0) return true;
    if (is_one_of(key, choice)) return !is_together(e);
    return is_one_of(key, mosaics) && fo_job_is_tiled(e) &&
           fth_config_bool(e->cfg, "focus.overwrite_stitch");
}

static fth_status parse_config(fth_config **out, fth_mem *mem, const char *name,
                               const fth_json_writer *w, fth_err *err)
{
    fth_config *cfg = NULL;
    FTH_TRY(fth_config_create(&cfg, mem, err));
    fth_status s = fth_config_parse(cfg, name, w->data, (size_t)w->used, err);
    if (s == FTH_OK)
        s = fth_config_check(cfg, &fo_schema, &(fth_config_options){.lenient = true}, err);
    if (s == FTH_OK)
        *out = cfg;
    else
        fth_config_destroy(cfg, NULL);
    return s;
}

/* As it would be recorded, without the keys above. */
static fth_status strip(fth_config **out, const fo_job *e, const char *name, const fth_config *cfg,
                        fth_err *err)
{
    fth_json_writer w;
    fth_json_begin(&w, e->mem, false);
    fo_record_add_config(&w, NULL, cfg, is_no_setting, e);
    fth_status s = fth_json_end(&w, err);
    if (s == FTH_OK) s = parse_config(out, e->mem, name, &w, err);
    fth_json_free(&w);
    return s;
}

static fth_status read_old(fth_config **out, const fo_job *e, const char *path,
                           const fth_json_value *old, fth_err *err)
{
    fth_json_writer w;
    fth_config *whole = NULL;
    fth_json_begin(&w, e->mem, false);
    fth_json_copy(&w, NULL, old);
    fth_status s = fth_json_end(&w, err);
    if (s == FTH_OK) s = parse_config(&whole, e->mem, path, &w, err);
    if (s == FTH_OK) s = strip(out, e, path, whole, err);
    fth_config_destroy(whole, NULL);
    fth_json_free(&w);
    return s;
}

/* Of a run folder that was given to two experiments. */
static bool is_of_another(const fo_job *e, const fth_json_value *old)
{
    const fth_json_value *input = fth_json_get(old, "input");
    return strcmp(fth_json_get_text(input, "exp", ""), fth_config_text(e->cfg, "input.exp")) != 0 ||
           strcmp(fth_json_get_text(input, "microscope", ""),
                  fth_config_text(e->cfg, "input.microscope")) != 0;
}

static fth_status compare_settings(fo_before *b, const fo_job *e, const char *path,
                                   const fth_json_value *old, fth_err *err)
{
    fth_config *was = NULL, *is = NULL;
    char text[FTH_ERR_TEXT - 200] = "";
    if (is_of_another(e, old)) {
        b->differs = true;
        FTH_FAIL(&b->why, FTH_E_CONFIG, "%.300s is the record of another experiment", path);
        return FTH_OK;
    }
    fth_status s = read_old(&was, e, path, old, err);
    if (s == FTH_OK) s = strip(&is, e, "now", e->cfg, err);
    if (s == FTH_OK && fth_config_compare(is, was, NULL, text, sizeof text) > 0) {
        b->differs = true;
        FTH_FAIL(&b->why, FTH_E_CONFIG, "the existing images were made with other settings:\n%s",
                 text);
    }
    fth_config_destroy(is, NULL);
    fth_config_destroy(was, NULL);
    return s;
}

/* ---- the raw file ---- */

/* By its size and its ends: a copy is the same file, whatever its time. */
static fth_status compare_file(fo_before *b, const fo_job *e, const fth_json_value *old,
                               fth_err *err)
{
    fth_path_info info;
    uint64_t hash = 0;
    const uint64_t bytes = (uint64_t)fth_json_get_int(old, "bytes", 0);
    FTH_TRY(fth_path_stat(e->place.raw, &info, err));
    FTH_TRY(fo_record_hash(e->mem, e->place.raw, &hash, err));
    if (info.bytes == bytes && hash == fth_json_get_hash(old, "ends_xxh64", 0)) return FTH_OK;
    b->differs = true;
    if (info.bytes != bytes)
        FTH_FAIL(&b->why, FTH_E_CONFIG,
                 "the existing images were made from another file: %.300s had %" PRIu64
                 " bytes, and has %" PRIu64,
                 e->place.raw, bytes, info.bytes);
    else
        FTH_FAIL(&b->why, FTH_E_CONFIG,
                 "the existing images were made from another file: %.300s has other contents",
                 e->place.raw);
    return FTH_OK;
}

static bool is_file(fth_status found, const char *path)
{
    fth_path_info info;
    return found == FTH_OK && fth_path_stat(path, &info, NULL) == FTH_OK && info.bytes > 0;
}

/* Existing tiles whose raw files changed. Raw files of missing tiles may change: that is how
 * damaged ones are replaced. */
static void compare_tiles(fo_before *b, const fo_job *e, const fth_json_value *old)
{
    enum { SHOWN = 5 };
    char path[FTH_PATH], name[80], list[SHOWN * 90] = "";
    int64_t n = 0;
    for (int64_t i = 0; i < e->in.n_stacks; i++) {
        fo_job_stem(e, i, name, sizeof name);
        const uint64_t was = fth_json_get_hash(old, name, 0);
        if (was == 0 || was == e->in.identity[i] || b->has_moved[fo_job_well(e, i)] ||
            !is_file(fo_job_path(e, i, FO_OUT_IMAGE, path, NULL), path))
            continue;
        const size_t used = strlen(list);
        if (n++ < SHOWN) snprintf(list + used, sizeof list - used, "\n  %s", name);
    }
    if (n == 0) return;
    b->differs = true;
    FTH_FAIL(&b->why, FTH_E_CONFIG,
             "%" PRId64 " existing tiles were made from other files than those below %.300s:%s%s",
             n, e->place.raw, list, n > SHOWN ? "\n  ..." : "");
}

/* ---- wells ---- */

/* Of a Keyence the number in the folder's name: others may come before it. */
static int64_t series_of(const fo_job *e, int well)
{
    for (int64_t p = 0; p < e->map.n; p++)
        if (e->map.well[p] == well) return fo_job_is_tiled(e) ? e->keyence.folder[p] : p + 1;
    return 0;
}

static fth_status compare_wells(fo_before *b, fo_job *e, const fth_json_value *old, fth_err *err)
{
    for (int w = 0; w < FO_WELLS; w++) {
        char name[FO_WELL_NAME], line[200];
        fo_well_name(w, name);
        b->series[w] = old ? fth_json_get_int(old, name, 0) : 0;
        const int64_t now = series_of(e, w);
        if (b->series[w] == 0 || now == 0 || now == b->series[w]) continue;
        b->has_moved[w] = b->any_moved = true;
        const int n =
            snprintf(line, sizeof line,
                     "%s was series %" PRId64 " and is series %" PRId64 ": its images are replaced",
                     name, b->series[w], now);
        FTH_TRY(fth_texts_add(e->notes, line, (size_t)n, err));
    }
    return FTH_OK;
}

void fo_before_add_wells(fth_json_writer *w, const fo_before *b, const fo_job *e)
{
    fth_json_open_row(w, "wells", '{');
    for (int well = 0; well < FO_WELLS; well++) {
        char name[FO_WELL_NAME];
        const int64_t now = series_of(e, well), series = now > 0 ? now : b->series[well];
        if (series > 0) fth_json_int(w, fo_well_name(well, name), series);
    }
    fth_json_close(w);
}

/* ".A01_t0000_ch00_stitch.jpg.1234-5f3a.tmp" */
static bool is_remains(const char *name)
{
    const size_t n = strlen(name);
    return n > 5 && name[0] == '.' && strcmp(name + n - 4, ".tmp") == 0;
}

/* Temporary files of killed runs: the folder is locked, so no other process writes them. */
static fth_status remove_remains(const fo_job *e, const char *folder, fth_err *err)
{
    fth_texts *names = NULL;
    fth_status s = fth_folder_list(&names, e->mem, folder, err);
    for (int64_t i = 0; s == FTH_OK && i < fth_texts_count(names); i++) {
        char path[FTH_PATH];
        if (!is_remains(fth_texts_get(names, i))) continue;
        s = fth_path_join(path, folder, fth_texts_get(names, i), err);
        if (s == FTH_OK && fth_path_kind_of(path) == FTH_PATH_FILE)
            s = fth_path_remove(e->mem, path, err);
    }
    fth_texts_free(names);
    return s;
}

/* Of all folders that are written to; tiles and the new layout have one for each well. */
static fth_status sweep_folders(const fo_job *e, fth_err *err)
{
    char last[FTH_PATH] = "", path[FTH_PATH], folder[FTH_PATH];
    FTH_TRY(remove_remains(e, e->place.run, err));
    FTH_TRY(remove_remains(e, e->place.images, err));
    if (fth_path_exists(e->place.tiles)) FTH_TRY(remove_remains(e, e->place.tiles, err));
    if (fth_path_exists(e->place.zstacks)) FTH_TRY(remove_remains(e, e->place.zstacks, err));
    for (int64_t i = 0; i < e->in.n_stacks; i++) {
        FTH_TRY(fo_job_path(e, i, FO_OUT_IMAGE, path, err));
        FTH_TRY(fth_path_parent(folder, path, err));
        if (strcmp(folder, last) == 0 || strcmp(folder, e->place.images) == 0) continue;
        snprintf(last, sizeof last, "%s", folder);
        if (fth_path_exists(folder)) FTH_TRY(remove_remains(e, folder, err));
    }
    return FTH_OK;
}

static fth_status sweep_tiles(const fo_before *b, const fo_job *e, fth_err *err)
{
    char path[FTH_PATH];
    for (int64_t i = 0; i < e->in.n_stacks; i++) {
        if (!b->has_moved[fo_job_well(e, i)]) continue;
        for (fo_port port = 0; port < FO_OUT_KINDS; port++) {
            FTH_TRY(fo_job_path(e, i, port, path, err));
            FTH_TRY(fth_path_remove(e->mem, path, err));
        }
        FTH_TRY(fo_job_mosaic_path(e, i, path, err));
        FTH_TRY(fth_path_remove(e->mem, path, err));
        FTH_TRY(fo_job_zstack_path(e, i, path, err));
        FTH_TRY(fth_path_remove(e->mem, path, err));
    }
    FTH_TRY(fth_path_join(path, e->place.run, "stitch.csv", err)); /* it has rows of those */
    return fth_path_remove(e->mem, path, err);
}

fth_status fo_before_sweep(const fo_before *b, const fo_job *e, fth_err *err)
{
    FTH_TRY(sweep_folders(e, err));
    if (b->any_moved && fo_job_is_tiled(e)) return sweep_tiles(b, e, err);
    for (int64_t p = 0; p < e->map.n && b->any_moved; p++) {
        if (e->map.well[p] < 0 || !b->has_moved[e->map.well[p]]) continue;
        for (int64_t t = 0; t < e->n_times; t++)
            for (int64_t c = 0; c < e->in.file[0].size[FO_C]; c++)
                for (fo_port port = 0; port < FO_OUT_KINDS; port++) {
                    const fo_stack s = {.p = (int32_t)p, .t = (int32_t)t, .c = (int32_t)c};
                    char path[FTH_PATH];
                    FTH_TRY(fo_job_path_of(e, &s, port, path, err));
                    if (fth_path_exists(path)) FTH_TRY(fth_path_remove(e->mem, path, err));
                }
    }
    return FTH_OK;
}

/* ---- all together ---- */

static fth_status compare(fo_before *b, fo_job *e, const char *path, const fth_json_value *root,
                          fth_err *err)
{
    const fth_json_value *config = fth_json_get(root, "config"),
                         *inputs = fth_json_get(root, "inputs");
    if (config) FTH_TRY(compare_settings(b, e, path, config, err));
    if (!b->differs && inputs && !fo_job_is_tiled(e))
        FTH_TRY(compare_file(b, e, fth_json_at(inputs, 0), err));
    if (!b->differs && fth_json_get_bool(root, "mixed_settings", false)) {
        b->differs = true;
        FTH_FAIL(&b->why, FTH_E_CONFIG,
                 "the existing images were made with several settings, or from several files");
    }
    FTH_TRY(compare_wells(b, e, fth_json_get(root, "wells"), err));
    if (!b->differs && fo_job_is_tiled(e)) compare_tiles(b, e, fth_json_get(root, FO_RECORD_TILES));
    return FTH_OK;
}

fth_status fo_before_read(fo_before *b, fo_job *e, fth_err *err)
{
    char path[FTH_PATH];
    fth_json *doc = NULL;
    *b = (fo_before){0};
    FTH_TRY(fth_path_join(path, e->place.run, FO_RECORD, err));
    if (!fth_path_exists(path)) return FTH_OK;
    FTH_TRY(fth_json_load(&doc, e->mem, path, err));
    const fth_status s = compare(b, e, path, fth_json_root(doc), err);
    fth_json_destroy(doc);
    if (b->differs)
        fth_err_hint(&b->why, "replace them with --overwrite, or keep them with --force-config");
    return s;
}
