/* record.c - see record.h. */
#include "record.h"

#include "../run/bound.h"

#include <string.h>

enum { MOST_CONFIG = 1 << 16, END_BYTES = 1 << 20 };

/* Keys that change nothing about an image. */
static bool is_passing(const char *key)
{
    static const char *const keys[] = {"focus.overwrite",
                                       "focus.force_config",
                                       "focus.metadata_only",
                                       "focus.overwrite_stitch",
                                       "focus.stitch_z",
                                       "focus.run_dir",
                                       "focus.require_gpu",
                                       "focus.strict",
                                       "focus.ignore_space",
                                       "focus.read_mode",
                                       "focus.workers",
                                       "focus.trace_stacks",
                                       "output_dir",
                                       "name",
                                       "paths",
                                       "instrument",
                                       "seed"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(keys[i], key) == 0) return true;
    return false;
}

/* ---- the config as JSON ---- */

static void add_value(fth_json_writer *w, const fth_config *cfg, const fth_config_key *k,
                      const char *name, int64_t i)
{
    switch (k->type) {
    case FTH_CONFIG_BOOL: fth_json_bool(w, name, fth_config_bool_at(cfg, k->name, i)); break;
    case FTH_CONFIG_INT: fth_json_int(w, name, fth_config_int_at(cfg, k->name, i)); break;
    case FTH_CONFIG_REAL: fth_json_real(w, name, fth_config_real_at(cfg, k->name, i)); break;
    case FTH_CONFIG_TEXT:
    case FTH_CONFIG_PATH:
    case FTH_CONFIG_CHOICE: fth_json_text(w, name, fth_config_text_at(cfg, k->name, i)); break;
    case FTH_CONFIG_SECTION:
    case FTH_CONFIG_SIZE:
    case FTH_CONFIG_TYPE_COUNT: break;
    }
}

void fo_record_add_config(fth_json_writer *w, const char *key, const fth_config *cfg,
                          bool (*is_left_out)(const void *user, const char *key), const void *user)
{
    static const char *const sections[] = {"input.", "focus."};
    fth_json_open(w, key, '{');
    fth_json_text(w, "name", "focus");
    for (int s = 0; s < 2; s++) {
        const size_t n = strlen(sections[s]);
        char section[16];
        snprintf(section, sizeof section, "%.*s", (int)n - 1, sections[s]);
        fth_json_open(w, section, '{');
        for (int64_t i = 0; i < fo_schema.n_keys; i++) {
            const fth_config_key *k = &fo_schema.key[i];
            if (strncmp(k->name, sections[s], n) != 0 || is_passing(k->name) || k->list ||
                (is_left_out && is_left_out(user, k->name)) || !fth_config_has(cfg, k->name))
                continue;
            add_value(w, cfg, k, k->name + n, 0);
        }
        fth_json_close(w);
    }
    fth_json_close(w);
}

/* Origin of a value: "flag", "environment NAME", "config", "default"; NULL: it has no value. */
static const char *source_of(const fo_job *e, const char *key)
{
    const char *by = e->source ? e->source(e->source_user, key) : NULL;
    if (by) return by;
    if (!fth_config_has(e->cfg, key)) return NULL;
    return fth_config_is_given(e->cfg, key) ? "config" : "default";
}

/* {"program": {"device": "flag"}, "input": {...}, "focus": {"method": "default", ...}} */
static void add_sources(fth_json_writer *w, const fo_job *e)
{
    static const char *const of_program[] = {"device", "memory", "device-memory", "threads"};
    static const char *const sections[] = {"input.", "focus."};
    fth_json_open(w, "config_sources", '{');
    fth_json_open(w, "program", '{');
    for (int i = 0; e->source && i < 4; i++) {
        const char *by = e->source(e->source_user, of_program[i]);
        fth_json_text(w, of_program[i], by ? by : "default");
    }
    fth_json_close(w);
    for (int s = 0; s < 2; s++) {
        const size_t n = strlen(sections[s]);
        char section[16];
        snprintf(section, sizeof section, "%.*s", (int)n - 1, sections[s]);
        fth_json_open(w, section, '{');
        for (int64_t i = 0; i < fo_schema.n_keys; i++) {
            const char *key = fo_schema.key[i].name;
            const char *by = strncmp(key, sections[s], n) == 0 ? source_of(e, key) : NULL;
            if (by && fo_schema.key[i].type != FTH_CONFIG_SECTION) fth_json_text(w, key + n, by);
        }
        fth_json_close(w);
    }
    fth_json_close(w);
}

/* ---- writing ---- */

/* Of the first and the last MiB: files of microscopes are too large to be read twice. */
fth_status fo_record_hash(fth_mem *mem, const char *path, uint64_t *hash, fth_err *err)
{
    fth_file *f = NULL;
    void *block = NULL;
    FTH_TRY(fth_file_open(&f, mem, path, err));
    const uint64_t all = fth_file_bytes(f), n = all < END_BYTES ? all : END_BYTES;
    fth_status s = fth_mem_take(mem, FTH_MEM_POOL, n + 1, "ends", &block, err);
    if (s == FTH_OK) s = fth_file_read(f, 0, n, block, "its start", err);
    if (s == FTH_OK) *hash = fth_hash_bytes(block, (size_t)n, all);
    if (s == FTH_OK) s = fth_file_read(f, all - n, n, block, "its end", err);
    if (s == FTH_OK) *hash = fth_hash_bytes(block, (size_t)n, *hash);
    fth_mem_release(mem, block, NULL);
    fth_file_close(f);
    return s;
}

static fth_status add_input(fth_json_writer *w, fth_mem *mem, const char *path, fth_err *err)
{
    fth_path_info info;
    uint64_t hash = 0;
    FTH_TRY(fth_path_stat(path, &info, err));
    FTH_TRY(fo_record_hash(mem, path, &hash, err));
    fth_json_open(w, NULL, '{');
    fth_json_text(w, "path", path);
    fth_json_u64(w, "bytes", info.bytes);
    fth_json_int(w, "mtime_ns", info.mtime_ns);
    fth_json_hash(w, "ends_xxh64", hash);
    fth_json_close(w);
    return FTH_OK;
}

/* Frames that files lack, each with its well. */
static void add_missing(fth_json_writer *w, const fo_job *e)
{
    const fo_input *in = &e->in;
    char name[FO_WELL_NAME];
    fth_json_open(w, "missing_frames", '[');
    for (int64_t i = 0; i < in->n_stacks; i++)
        for (int64_t z = 0; z < in->stack[i].planes; z++) {
            if (in->present[i * in->planes + z]) continue;
            fth_json_open(w, NULL, '{');
            fth_json_text(w, "well", fo_well_name(fo_job_well(e, i), name));
            fth_json_int(w, "t", in->stack[i].t);
            if (fo_job_is_tiled(e)) fth_json_int(w, "tile", in->stack[i].b);
            fth_json_int(w, "z", z + in->first_plane);
            fth_json_close(w);
        }
    fth_json_close(w);
}

static void add_counts(fth_json_writer *w, const char *key, int64_t total, int64_t done,
                       int64_t skipped, int64_t failed)
{
    fth_json_open_row(w, key, '{');
    fth_json_int(w, "total", total);
    fth_json_int(w, "done", done);
    fth_json_int(w, "skipped", skipped);
    fth_json_int(w, "failed", failed);
    fth_json_close(w);
}

static void add_texts(fth_json_writer *w, const fth_texts *texts)
{
    for (int64_t i = 0; texts && i < fth_texts_count(texts); i++)
        fth_json_text(w, NULL, fth_texts_get(texts, i));
}

static void add_images(fth_json_writer *w, const fo_work *work)
{
    const fo_results *r = &work->results;
    add_counts(w, "images", fo_work_total(work), fo_work_count(work, FO_DONE),
               fo_work_count(work, FO_SKIPPED), fo_work_count(work, FO_FAILED));
    fth_json_int(w, "images_waiting", fo_work_count(work, FO_WAITING));
    fth_json_int(w, "images_without_frames", fo_work_count(work, FO_EMPTY));
    if (fo_job_is_tiled(&work->e))
        add_counts(w, "tiles", r->n, fo_results_count(r, FO_DONE), fo_results_count(r, FO_SKIPPED),
                   fo_results_count(r, FO_FAILED));
    fth_json_open(w, "failures", '[');
    add_texts(w, r->failures);
    add_texts(w, work->mosaics.failures);
    fth_json_close(w);
}

/* Of a tree of images: all of them together. */
static void add_tree(fth_json_writer *w, const fo_job *e)
{
    fth_json_open(w, NULL, '{');
    fth_json_text(w, "path", e->place.raw);
    fth_json_int(w, "files", e->files.n);
    fth_json_u64(w, "bytes", e->files.bytes);
    fth_json_int(w, "mtime_ns", e->files.newest_ns);
    fth_json_hash(w, "names_sizes_times_xxh64", e->files.hash);
    fth_json_close(w);
}

/* Of each tile, to know its files again. */
static void add_tile_files(fth_json_writer *w, const fo_job *e)
{
    fth_json_open(w, FO_RECORD_TILES, '{');
    for (int64_t i = 0; i < e->in.n_stacks; i++) {
        char name[80];
        fo_job_stem(e, i, name, sizeof name);
        fth_json_hash(w, name, e->in.identity[i]);
    }
    fth_json_close(w);
}

fth_status fo_record_save(const fo_work *work, fth_err *err)
{
    const fo_job *e = &work->e;
    char path[FTH_PATH];
    fth_json_writer w;
    FTH_TRY(fth_path_join(path, e->place.run, FO_RECORD, err));
    fth_json_begin(&w, e->mem, true);
    fth_json_open(&w, NULL, '{');
    fth_json_text(&w, "version", fth_version());
    add_images(&w, work);
    if (work->pipeline.plans > 0 || work->pipeline.stitch_s > 0) {
        fo_bound_add(&work->pipeline, &w);
    } else {
        fth_json_text(&w, "device", fth_context_device(work->ctx));
        fth_json_text(&w, "device_reason", fth_context_device_reason(work->ctx));
    }
    fth_json_int(&w, "threads", fth_context_threads(work->ctx));
    fo_record_add_config(&w, "config", e->cfg, NULL, NULL);
    fth_json_bool(&w, "mixed_settings", work->mixed);
    add_sources(&w, e);
    fo_before_add_wells(&w, &work->before, e);
    fth_json_open(&w, "inputs", '[');
    fth_status s = FTH_OK;
    if (fo_job_is_tiled(e))
        add_tree(&w, e);
    else
        s = add_input(&w, e->mem, e->place.raw, err);
    if (s == FTH_OK) s = add_input(&w, e->mem, e->place.plate, err);
    fth_json_close(&w);
    if (fo_job_is_tiled(e)) add_tile_files(&w, e);
    add_missing(&w, e);
    fth_json_close(&w);
    if (s != FTH_OK) {
        fth_json_free(&w);
        return s;
    }
    return fth_json_save(&w, path, err);
}
