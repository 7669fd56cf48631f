/* folder.c - the preprocessed folder, written under a temporary name and renamed when complete. */
#include "../data/metadata.h"
#include "display.h"
#include "preprocess.h"

#include <inttypes.h>
#include <string.h>

/* ---- arrays ---- */

static fth_status write_places(const sp_prepared *p, const char *path, fth_err *err)
{
    const int64_t size[2] = {p->cells.n, 2};
    return fth_npy_save(p->source.mem, path, FTH_F32, 2, size, p->cells.xy, err);
}

/* Names may be duplicates; row numbers map results back to the file. */
static fth_status write_rows(sp_prepared *p, const char *path, fth_err *err)
{
    p->rows_hash = fth_hash_bytes(p->cells.row, (size_t)p->cells.n * sizeof *p->cells.row, 0);
    return fth_npy_save(p->source.mem, path, FTH_I64, 1, &p->cells.n, p->cells.row, err);
}

/* Codes as i64; NULL: all are 0. */
static fth_status write_codes(const sp_prepared *p, const int32_t *code, const char *path,
                              fth_err *err)
{
    enum { PIECE = 4096 };
    int64_t piece[PIECE] = {0};
    fth_sink sink = {0};
    FTH_TRY(fth_npy_create(&sink, p->source.mem, path, FTH_I64, 1, &p->cells.n, err));
    fth_status s = FTH_OK;
    for (int64_t at = 0; s == FTH_OK && at < p->cells.n;) {
        const int64_t left = p->cells.n - at, n = left < PIECE ? left : PIECE;
        for (int64_t i = 0; code && i < n; i++) piece[i] = code[at + i];
        s = sink.write(sink.self, &at, &n, piece, err);
        at += n;
    }
    if (s == FTH_OK) s = sink.commit(sink.self, err);
    fth_sink_close(&sink);
    return s;
}

/* A picture that was written: only its place stays. */
typedef struct sp_written {
    sp_image image;
    char file[32], from[300];
} sp_written;
_Static_assert(sizeof(sp_written) <= SP_WRITTEN_BYTES, "it is in the plan");
typedef struct images {
    sp_written *of;
    int64_t n;
} images;

static fth_status write_image(const sp_prepared *p, const char *dir, int64_t i, sp_written *w,
                              bool *done, fth_err *err)
{
    sp_tissue t;
    fth_mem *mem = p->source.mem;
    *done = false;
    FTH_TRY(sp_tissue_open(&t, &p->tissues, i, err));
    fth_status s = sp_tissue_make(&w->image, &t, &p->tissues, &p->cells, err);
    snprintf(w->from, sizeof w->from, "%s", t.name);
    sp_tissue_close(&t);
    if (s != FTH_OK || !w->image.rgb) return s;
    if (p->sections.n > 0)
        snprintf(w->file, sizeof w->file, "image_%" PRId64 ".png", w->image.section);
    else
        snprintf(w->file, sizeof w->file, SP_IMAGE);
    s = sp_image_save(&w->image, mem, dir, w->file, err);
    (void)fth_mem_release(mem, w->image.rgb, NULL);
    w->image.rgb = NULL;
    *done = s == FTH_OK;
    return s;
}

/* image.png, where the source has a picture, or one of each section that has one. */
static fth_status write_images(const sp_prepared *p, const char *dir, images *out, fth_err *err)
{
    void *block = NULL;
    *out = (images){0};
    if (p->tissues.n == 0) return FTH_OK;
    FTH_TRY(fth_mem_take(p->source.mem, FTH_MEM_META, (uint64_t)p->tissues.n * SP_WRITTEN_BYTES,
                         "places of images", &block, err));
    out->of = block;
    for (int64_t i = 0; i < p->tissues.n; i++) {
        bool done = false;
        out->of[out->n] = (sp_written){0};
        FTH_TRY(write_image(p, dir, i, &out->of[out->n], &done, err));
        out->n += done;
    }
    return out->n > 0 ? FTH_OK : sp_tissues_none(&p->tissues, err);
}

static void put_images(fth_json_writer *w, const sp_prepared *p, const images *all)
{
    if (p->sections.n == 0 && all->n > 0)
        sp_image_put(w, "image", &all->of->image, all->of->file, NULL, all->of->from);
    if (p->sections.n == 0 || all->n == 0) return;
    fth_json_open(w, "images", '[');
    for (int64_t i = 0; i < all->n; i++) {
        const sp_written *one = &all->of[i];
        sp_image_put(w, NULL, &one->image, one->file,
                     sp_sections_name(&p->sections, one->image.section), one->from);
    }
    fth_json_close(w);
}

/* ---- metadata ---- */

/* One key of the config as JSON. */
static void put_key(fth_json_writer *w, const fth_config *cfg, const fth_config_key *key,
                    const char *name)
{
    const int64_t n = fth_config_count(cfg, key->name);
    if (key->list) fth_json_open(w, name, '[');
    for (int64_t i = 0; i < n; i++) {
        const char *as = key->list ? NULL : name;
        switch (key->type) {
        case FTH_CONFIG_BOOL: fth_json_bool(w, as, fth_config_bool_at(cfg, key->name, i)); break;
        case FTH_CONFIG_INT: fth_json_int(w, as, fth_config_int_at(cfg, key->name, i)); break;
        case FTH_CONFIG_REAL: fth_json_real(w, as, fth_config_real_at(cfg, key->name, i)); break;
        case FTH_CONFIG_SECTION:
        case FTH_CONFIG_TEXT:
        case FTH_CONFIG_PATH:
        case FTH_CONFIG_SIZE:
        case FTH_CONFIG_CHOICE:
        case FTH_CONFIG_TYPE_COUNT:
            fth_json_text(w, as, fth_config_text_at(cfg, key->name, i));
            break;
        }
    }
    if (key->list) fth_json_close(w);
}

static const char section[] = "preprocessing.";

/* The name of a key of the section, without it; NULL: another key, or one without a value. Paths
 * are not part of a result; files are identified by their hash. */
static const char *own_name(const fth_config *cfg, const fth_config_key *key)
{
    const size_t n = sizeof section - 1;
    if (key->type == FTH_CONFIG_SECTION || key->type == FTH_CONFIG_PATH ||
        strncmp(key->name, section, n) != 0)
        return NULL;
    return fth_config_has(cfg, key->name) ? key->name + n : NULL;
}

/* Keys that are given; or all that act, given or not. */
static void put_section(fth_json_writer *w, const char *name, const fth_config *cfg, bool acting)
{
    const sp_loader *loader = sp_loader_of(cfg);
    fth_json_open(w, name, '{');
    for (int64_t i = 0; i < sp_schema.n_keys; i++) {
        const fth_config_key *key = &sp_schema.key[i];
        const char *own = own_name(cfg, key);
        if (!own) continue;
        const bool given = fth_config_is_given(cfg, key->name);
        if (acting ? sp_rules_act(cfg, loader, key->name, given) : given) put_key(w, cfg, key, own);
    }
    fth_json_close(w);
}

static void put_names(fth_json_writer *w, const sp_prepared *p)
{
    const sp_source *s = &p->source;
    fth_json_open(w, "gene_names", '[');
    for (int64_t g = 0; g < s->counts.cols; g++)
        if (p->walk.gene_map[g] >= 0) fth_json_text(w, NULL, fth_texts_get(s->genes, g));
    fth_json_close(w);
    if (s->cells) {
        fth_json_open(w, "spot_names", '[');
        for (int64_t i = 0; i < p->cells.n; i++)
            fth_json_text(w, NULL, fth_texts_get(s->cells, p->cells.row[i]));
        fth_json_close(w);
    } else
        fth_json_null(w, "spot_names");
    fth_json_open(w, "group_names", '[');
    if (!p->group_map) fth_json_text(w, NULL, "All");
    for (int64_t g = 0; p->group_map && g < fth_texts_count(s->group.names); g++)
        if (p->group_map[g] >= 0) fth_json_text(w, NULL, fth_texts_get(s->group.names, g));
    fth_json_close(w);
    if (p->sections.n > 0) sp_sections_put_names(w, SP_SECTION_NAMES, &p->sections);
}

static void put_origin(fth_json_writer *w, const sp_prepared *p, const fth_config *cfg)
{
    fth_json_open(w, "fathom", '{');
    fth_json_text(w, "version", fth_version());
    fth_json_int(w, "algorithm", SP_PREPROCESS_ALGORITHM);
    fth_json_int(w, "source_bytes", p->bytes);
    fth_json_hash(w, "source_xxh64", p->hash);
    fth_json_hash(w, "rows_xxh64", p->rows_hash);
    fth_json_open(w, "removed_cells", '{');
    for (int k = 0; k < SP_DROP_KINDS; k++)
        if ((k != SP_DROP_GENES || p->rules.min_genes > 0) &&
            (k != SP_DROP_SECTION || p->sections.n > 0))
            fth_json_int(w, sp_drop_names[k], p->dropped[k]);
    fth_json_close(w);
    fth_json_int(w, "removed_genes", p->source.counts.cols - p->walk.genes);
    if (p->rules.more) {
        fth_json_open(w, "removed_genes_by", '{');
        for (int k = 1; k < SP_GENE_DROPS; k++)
            fth_json_int(w, sp_gene_drop_names[k], p->walk.removed[k]);
        fth_json_close(w);
    }
    fth_json_int(w, "renamed_genes", p->source.renamed);
    fth_json_text(w, "dataset", p->source.loader->name);
    put_section(w, "preprocessing", cfg, true);
    fth_json_close(w);
}

static fth_status put_metadata(const sp_prepared *p, const fth_config *cfg,
                               const sp_display *display, const images *all, FILE *f,
                               const char *path, fth_err *err)
{
    fth_json_writer w;
    fth_json_begin_file(&w, f, path, true);
    fth_json_open(&w, NULL, '{');
    fth_json_int(&w, "n_spots", p->cells.n);
    fth_json_int(&w, "n_genes", p->walk.genes);
    fth_json_int(&w, "n_groups", p->groups);
    put_names(&w, p);
    sp_display_put(&w, display, p);
    put_images(&w, p, all);
    fth_json_text(&w, "dataset", p->source.loader->name);
    put_section(&w, "preprocessing", cfg, false);
    if (p->sections.n > 0)
        sp_sections_put(&w, SP_SECTIONS, &p->sections); /* with an offset of each */
    else {
        fth_json_open(&w, "offset", '[');
        for (int a = 0; a < 2; a++) fth_json_real(&w, NULL, p->frame.offset[a]);
        fth_json_close(&w);
    }
    fth_json_real(&w, "scale", p->frame.scale);
    put_origin(&w, p, cfg);
    fth_json_close(&w);
    return fth_json_end(&w, err);
}

/* There may be many names: they are written one by one. */
static fth_status write_metadata(const sp_prepared *p, const fth_config *cfg, const images *all,
                                 const char *path, fth_err *err)
{
    sp_display display;
    FTH_TRY(sp_display_find(&display, &p->source, err));
    fth_file_stream *f = NULL;
    fth_status s = fth_file_stream_create(&f, p->source.mem, path, err);
    if (s == FTH_OK) s = put_metadata(p, cfg, &display, all, fth_file_stream_file(f), path, err);
    sp_display_free(&display);
    if (s == FTH_OK) return fth_file_stream_commit(f, err);
    fth_file_stream_abandon(f);
    return s;
}

/* ---- all of it ---- */

static fth_status write_files(sp_prepared *p, const fth_config *cfg, const char *dir, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(fth_path_join(path, dir, SP_X, err));
    FTH_TRY(write_places(p, path, err));
    FTH_TRY(fth_path_join(path, dir, SP_C, err));
    FTH_TRY(write_codes(p, p->cells.code, path, err));
    if (p->sections.n > 0) {
        FTH_TRY(fth_path_join(path, dir, SP_S, err));
        FTH_TRY(write_codes(p, p->cells.section, path, err));
    }
    FTH_TRY(fth_path_join(path, dir, SP_ROWS, err));
    FTH_TRY(write_rows(p, path, err));
    FTH_TRY(fth_path_join(path, dir, SP_Y, err));
    FTH_TRY(sp_count_walk_write(&p->walk, &p->cells, p->entries, path, err));
    if (p->variable.mem) {
        FTH_TRY(fth_path_join(path, dir, SP_GENE_SELECTION, err));
        FTH_TRY(sp_variable_write(&p->variable, &p->walk, path, err));
    }
    images all;
    FTH_TRY(fth_path_join(path, dir, SP_METADATA, err));
    fth_status s = write_images(p, dir, &all, err);
    if (s == FTH_OK) s = write_metadata(p, cfg, &all, path, err);
    if (all.of) (void)fth_mem_release(p->source.mem, all.of, NULL);
    return s;
}

fth_status sp_folder_write(sp_prepared *p, const fth_stage_call *call, const char *dir,
                           fth_err *err)
{
    char made[FTH_PATH];
    fth_mem *mem = p->source.mem;
    FTH_TRY(fth_path_beside(made, dir, "tmp", err));
    FTH_TRY(fth_folder_remove(mem, made, err));
    FTH_TRY(fth_context_meet(call->context, err)); /* other ranks write below it, too */
    FTH_TRY(fth_folder_make(mem, made, err));
    fth_status s = write_files(p, call->config, made, err);
    if (s == FTH_OK) {
        fth_stage_point(call, "before_outputs");
        s = fth_folder_replace(mem, dir, made, err);
    }
    if (s != FTH_OK && fth_ranks_rank(fth_context_ranks(call->context)) == 0)
        fth_folder_remove(NULL, made, NULL);
    return s;
}

/* ---- what a folder was made with ---- */

typedef struct diff {
    char *text;
    size_t bytes, used;
} diff;

static void add_diff(diff *d, const char *key, const char *old, const char *now)
{
    const int n =
        snprintf(d->text + d->used, d->bytes - d->used, "%s%s: %.100s in the folder, %.100s now",
                 d->used ? "; " : "", key, old, now);
    d->used += n > 0 ? (size_t)n : 0;
    if (d->used >= d->bytes) d->used = d->bytes - 1;
}

/* One value as JSON, for comparing; false: it is too long. */
enum { VALUE = 1 << 18 };
static bool value_text(char *text, const fth_config *cfg, const fth_config_key *key)
{
    fth_json_writer w;
    fth_json_begin_fixed(&w, text, VALUE);
    put_key(&w, cfg, key, NULL);
    return fth_json_end(&w, NULL) == FTH_OK;
}

static bool json_text(char *text, const fth_json_value *v)
{
    fth_json_writer w;
    fth_json_begin_fixed(&w, text, VALUE);
    fth_json_copy(&w, NULL, v);
    return fth_json_end(&w, NULL) == FTH_OK;
}

/* `v` is the value in the folder, `given` that of the config it was made with. Earlier versions
 * wrote values that did not act. */
static void compare_key(diff *d, const fth_config *cfg, const fth_config_key *key,
                        const fth_json_value *v, const fth_json_value *given, char *was, char *is)
{
    static const char none[] = "not given";
    const sp_loader *loader = sp_loader_of(cfg);
    const bool acted = sp_rules_act(cfg, loader, key->name, given != NULL),
               acts = sp_rules_act(cfg, loader, key->name, fth_config_is_given(cfg, key->name));
    memcpy(was, none, sizeof none);
    memcpy(is, none, sizeof none);
    if (!acted) v = NULL; /* a key that leaves it without effect is compared by itself */
    const bool has = acts && fth_config_has(cfg, key->name);
    bool fits = !v || json_text(was, v);
    if (has) fits = value_text(is, cfg, key) && fits;
    /* a key that did not exist when the folder was written had its default */
    const bool same =
        !v && has ? !fth_config_is_given(cfg, key->name) : fits && strcmp(was, is) == 0;
    if (!same) add_diff(d, key->name, was, is);
}

/* Lists of genes are long. */
static fth_status compare_keys(diff *d, const fth_config *cfg, const fth_json_value *old,
                               const fth_json_value *given, fth_mem *mem, fth_err *err)
{
    void *text = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, 2 * VALUE, "values of keys", &text, err));
    for (int64_t i = 0; i < sp_schema.n_keys; i++) {
        const fth_config_key *key = &sp_schema.key[i];
        const size_t n = sizeof section - 1;
        if (key->type != FTH_CONFIG_SECTION && key->type != FTH_CONFIG_PATH &&
            strncmp(key->name, section, n) == 0)
            compare_key(d, cfg, key, fth_json_get(old, key->name + n),
                        fth_json_get(given, key->name + n), text, (char *)text + VALUE);
    }
    return fth_mem_release(mem, text, err);
}

static void compare_source(diff *d, const sp_prepared *now, const fth_json_value *old)
{
    if (fth_json_get_int(old, "source_bytes", -1) == now->bytes &&
        fth_json_get_hash(old, "source_xxh64", 0) == now->hash)
        return;
    add_diff(d, "source", "other bytes", now->source.path);
}

fth_status sp_folder_compare(const sp_prepared *now, const fth_config *cfg, const char *dir,
                             char *text, size_t bytes, sp_folder_maker *maker, fth_err *err)
{
    char path[FTH_PATH];
    fth_json *doc = NULL, *config = NULL;
    diff d = {text, bytes, 0};
    text[0] = '\0';
    *maker = SP_MADE_ELSEWHERE;
    FTH_TRY(fth_path_join(path, dir, SP_METADATA, err));
    FTH_TRY(sp_metadata_member(&doc, now->source.mem, path, "fathom", err));
    const fth_json_value *old = fth_json_root(doc);
    fth_status s =
        old ? sp_metadata_member(&config, now->source.mem, path, "preprocessing", err) : FTH_OK;
    if (!old)
        snprintf(text, bytes, "it was not written by this program");
    else if (s == FTH_OK) {
        const char *dataset = fth_json_get_text(old, "dataset", "");
        if (strcmp(dataset, fth_config_text(cfg, "dataset")) != 0)
            add_diff(&d, "dataset", dataset, fth_config_text(cfg, "dataset"));
        char was[24], is[24];
        snprintf(was, sizeof was, "%lld", (long long)fth_json_get_int(old, "algorithm", 0));
        snprintf(is, sizeof is, "%d", SP_PREPROCESS_ALGORITHM);
        if (strcmp(was, is) != 0) add_diff(&d, "algorithm", was, is);
        s = compare_keys(&d, cfg, fth_json_get(old, "preprocessing"), fth_json_root(config),
                         now->source.mem, err);
        const sp_rules rules = sp_rules_of(cfg, sp_loader_of(cfg));
        if (rules.more && !fth_json_get(old, "removed_genes_by"))
            add_diff(&d, "quality control", "only that of the dataset", "that of the keys");
        compare_source(&d, now, old);
        /* and how positions were rescaled */
        *maker = fth_json_get(old, "rows_xxh64") ? SP_MADE_HERE : SP_MADE_EARLIER;
    }
    fth_json_destroy(config);
    fth_json_destroy(doc);
    return s;
}

bool sp_folder_exists(const char *dir)
{
    char path[FTH_PATH];
    return fth_path_join(path, dir, SP_Y, NULL) == FTH_OK && fth_path_exists(path);
}
