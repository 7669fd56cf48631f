/* record.c - see record.h. */
#include "record.h"

#include "../run/bound.h"

#include <string.h>

#define RECORD "run.json"
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

/* Keys that change the images and not the tiles, which is what they are made of. */
static bool is_of_stitching(const char *key)
{
    static const char *const keys[] = {"focus.overlap", "focus.blend", "focus.orientation",
                                       "focus.polarity"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(keys[i], key) == 0) return true;
    return false;
}

/* {"input": {...}, "focus": {...}}: what decides about the images; with `tiles`, about those. */
static void add_config(fth_json_writer *w, const char *key, const fth_config *cfg, bool tiles)
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
                (tiles && is_of_stitching(k->name)) || !fth_config_has(cfg, k->name))
                continue;
            add_value(w, cfg, k, k->name + n, 0);
        }
        fth_json_close(w);
    }
    fth_json_close(w);
}

/* Who said so: "flag", "environment NAME", "config", "default"; NULL: it has no value. */
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

/* ---- comparing ---- */

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

/* Both as they would be recorded, so keys that do not count are in neither. */
static fth_status compare(const fo_job *e, const char *path, const fth_json_value *old,
                          fth_err *err)
{
    fth_json_writer a, b;
    fth_config *was = NULL, *is = NULL;
    char text[FTH_ERR_TEXT - 200] = "";
    const bool tiles = fo_job_is_tiled(e) && fth_config_bool(e->cfg, "focus.overwrite_stitch");
    fth_json_begin(&a, e->mem, false);
    fth_json_copy(&a, NULL, old);
    fth_json_begin(&b, e->mem, false);
    add_config(&b, NULL, e->cfg, tiles);
    fth_status s = fth_json_end(&a, err);
    if (s == FTH_OK) s = fth_json_end(&b, err);
    if (s == FTH_OK) s = parse_config(&was, e->mem, path, &a, err);
    if (s == FTH_OK && tiles) { /* what was recorded has all keys */
        fth_json_free(&a);
        fth_json_begin(&a, e->mem, false);
        add_config(&a, NULL, was, tiles);
        fth_config_destroy(was, NULL);
        was = NULL;
        s = fth_json_end(&a, err);
        if (s == FTH_OK) s = parse_config(&was, e->mem, path, &a, err);
    }
    if (s == FTH_OK) s = parse_config(&is, e->mem, "now", &b, err);
    if (s == FTH_OK && fth_config_compare(is, was, NULL, text, sizeof text) > 0) {
        s = FTH_FAIL(err, FTH_E_CONFIG,
                     "the images that are there were made with other settings:\n%s", text);
        fth_err_hint(err, "make them again with --overwrite, or keep them with --force-config");
    }
    fth_config_destroy(is, NULL);
    fth_config_destroy(was, NULL);
    fth_json_free(&b);
    fth_json_free(&a);
    return s;
}

fth_status fo_record_compare(const fo_job *e, fth_err *err)
{
    char path[FTH_PATH];
    fth_json *doc = NULL;
    FTH_TRY(fth_path_join(path, e->place.run, RECORD, err));
    if (!fth_path_exists(path)) return FTH_OK;
    FTH_TRY(fth_json_load(&doc, e->mem, path, err));
    const fth_json_value *old = fth_json_get(fth_json_root(doc), "config");
    const fth_status s = old ? compare(e, path, old, err) : FTH_OK;
    fth_json_destroy(doc);
    return s;
}

/* ---- writing ---- */

/* Of the first and the last MiB: files of microscopes are too large to be read twice. */
static fth_status hash_ends(fth_mem *mem, const char *path, uint64_t *hash, fth_err *err)
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
    FTH_TRY(hash_ends(mem, path, &hash, err));
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

fth_status fo_record_save(const fo_work *work, fth_err *err)
{
    const fo_job *e = &work->e;
    char path[FTH_PATH];
    fth_json_writer w;
    FTH_TRY(fth_path_join(path, e->place.run, RECORD, err));
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
    add_config(&w, "config", e->cfg, false);
    add_sources(&w, e);
    fth_json_open(&w, "inputs", '[');
    fth_status s = FTH_OK;
    if (fo_job_is_tiled(e))
        add_tree(&w, e);
    else
        s = add_input(&w, e->mem, e->place.raw, err);
    if (s == FTH_OK) s = add_input(&w, e->mem, e->place.plate, err);
    fth_json_close(&w);
    add_missing(&w, e);
    fth_json_close(&w);
    if (s != FTH_OK) {
        fth_json_free(&w);
        return s;
    }
    return fth_json_save(&w, path, err);
}
