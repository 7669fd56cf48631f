/* generate.c - write the configs of the models that a general config stands for.
 *
 * The file of a variant defines its job, so the text is generated first and parsed as if it were on
 * disk. An existing file that was not generated, or was edited since, is not replaced without
 * --force: it is used as it is, and must define the same job. A comment at its top holds the hash
 * of its content, which reveals edits.
 */
#include "base/hash.h"
#include "base/str.h"
#include "config/node.h"
#include "config/read.h"
#include "config/schema.h"
#include "io/file.h"
#include "job/find/jobs.h"
#include "job/find/path.h"
#include "mem/heap.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static const char mark[] = "# general xxh64 ", mark_content[] = ", content xxh64 ";
enum { HEX = 16 };

/* ---- what is there ---- */

typedef enum file_state { ABSENT, SAME, OURS, EDITED, FOREIGN } file_state;

/* Of a file's text: was it made here, and is it as it was made? */
static file_state judge(const char *text, size_t bytes, const char *wanted)
{
    if (bytes == strlen(wanted) && memcmp(text, wanted, bytes) == 0) return SAME;
    const char *line = text;
    while (line[0] == '#' && strncmp(line, mark, strlen(mark)) != 0) {
        const char *end = strchr(line, '\n');
        if (!end) return FOREIGN;
        line = end + 1;
    }
    if (strncmp(line, mark, strlen(mark)) != 0) return FOREIGN;
    const char *end = strchr(line, '\n'), *content = strstr(line, mark_content);
    if (!end || !content || content + strlen(mark_content) + HEX != end) return EDITED;
    char hex[HEX + 1];
    fth__hash_hex(fth__hash_bytes(end + 1, (size_t)(text + bytes - end - 1), 0), hex);
    return strncmp(content + strlen(mark_content), hex, HEX) == 0 ? OURS : EDITED;
}

/* *text is the heap's, NULL when there is none. */
static fth_status inspect(fth_mem *mem, const char *path, const char *wanted, file_state *out,
                          char **text, size_t *bytes, fth_err *err)
{
    struct stat st;
    fth_file *f = NULL;
    void *block = NULL;
    *text = NULL;
    *out = ABSENT;
    if (stat(path, &st) != 0 && errno == ENOENT) return FTH_OK;
    FTH_TRY(fth_file_open(&f, mem, path, err));
    *bytes = (size_t)f->bytes;
    fth_status s = FTH_OK;
    if (f->bytes > FTH__CONFIG_BYTES)
        s = FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: it has %llu bytes, a config has at most %d", path,
                     (unsigned long long)f->bytes, (int)FTH__CONFIG_BYTES);
    if (s == FTH_OK) s = fth__heap_take(mem, (int64_t)f->bytes + 1, 1, &block, err);
    if (s == FTH_OK) s = fth_file_read(f, 0, f->bytes, block, "the config", err);
    fth_file_close(f);
    if (s != FTH_OK) {
        fth__heap_free(mem, block);
        return s;
    }
    *text = block;
    *out = judge(*text, *bytes, wanted);
    return FTH_OK;
}

/* ---- the text of a variant ---- */

typedef struct general {
    fth_jobs *jobs;
    const fth__found *file;
    const fth_variant *variant;
    const char *text; /* of the general config */
    size_t bytes;
    const char *place; /* "general.yaml (svgp)": of what the variant sets */
} general;

/* "name=liver_svgp": the dataset says more than the name of a general config does. */
static const char *name_assignment(const general *g, const fth_config *cfg)
{
    const fth_schema *schema = g->file->instrument->schema;
    const int64_t row = fth__schema_find(schema, "dataset");
    const char *base = fth_config_peek(cfg, row < 0 ? "name" : "dataset");
    if (!base && row >= 0) base = schema->key[row].value;
    if (!base || fth__schema_find(schema, "name") < 0) return NULL;
    char *out = fth__store_print(&g->jobs->texts, "name=\"%s_%s\"", base, g->variant->name);
    if (!out) return "";
    bool plain = true;
    char *first = out + strlen("name=\""), *last = out + strlen(out) - 1;
    for (char *s = first; s < last; s++) {
        const unsigned char c = (unsigned char)*s;
        if (c < ' ' || c == '"' || c == '\\' || c == 0x7f) *s = '_';
        if (strchr(":#{}[],&*!|>'%@`?", *s) || c >= 0x7f) plain = false;
    }
    if (!plain || first[0] == ' ' || first[0] == '-') return out;
    *last = '\0'; /* without quotes, as a person would write it */
    memmove(first - 1, first, (size_t)(last - first) + 1);
    return out;
}

/* The general config with what makes it this variant; not checked. */
static fth_status add_layers(const general *g, fth_config *cfg, fth_err *err)
{
    FTH_TRY(fth_config_parse(cfg, g->file->shown, g->text, g->bytes, err));
    const char *name = name_assignment(g, cfg);
    if (name && !name[0]) return fth__jobs_no_memory(err);
    for (size_t i = 0; i < sizeof g->variant->set / sizeof g->variant->set[0]; i++)
        if (g->variant->set[i]) FTH_TRY(fth__config_set_as(cfg, g->place, g->variant->set[i], err));
    return name ? fth__config_set_as(cfg, g->place, name, err) : FTH_OK;
}

/* The same with the user's values, which may also repair it: its mistakes are those that count,
 * and they stand in the general file. */
static fth_status check_general(const general *g, bool *good, fth_err *err)
{
    fth_config *cfg = NULL;
    FTH_TRY(fth_config_create(&cfg, g->jobs->mem, err));
    fth_status s = add_layers(g, cfg, err);
    for (int i = 0; s == FTH_OK && i < g->jobs->opt.n_sets; i++)
        s = fth_config_set(cfg, g->jobs->opt.set[i], err);
    if (s == FTH_OK) s = fth__jobs_check(g->jobs, cfg, g->file->instrument, true, good, err);
    const fth_status end = fth_config_destroy(cfg, err);
    return s != FTH_OK ? s : end;
}

static const char *print_file(const general *g, const fth_config *cfg)
{
    const size_t n = fth_config_layout(cfg, g->variant->name, NULL, NULL, 0);
    char *body = fth__store_take(&g->jobs->texts, n + 1);
    if (!body) return NULL;
    fth_config_layout(cfg, g->variant->name, NULL, body, n + 1);
    char from[HEX + 1], content[HEX + 1];
    fth__hash_hex(fth__hash_bytes(g->text, g->bytes, 0), from);
    fth__hash_hex(fth__hash_bytes(body, n, 0), content);
    return fth__store_print(&g->jobs->texts,
                            "# Made by fathom from %s: write changes there. Once this file is "
                            "edited,\n# it is kept and used as it is.\n%s%s%s%s\n%s",
                            fth__path_leaf(g->file->shown), mark, from, mark_content, content,
                            body);
}

/* What the file of the variant holds: values of the general config only. */
static fth_status make_text(const general *g, const char **out, fth_err *err)
{
    fth_config *cfg = NULL;
    fth_err why = {0};
    FTH_TRY(fth_config_create(&cfg, g->jobs->mem, err));
    fth_status s = add_layers(g, cfg, err);
    if (s == FTH_OK) {
        s = fth_config_check(cfg, g->file->instrument->schema, NULL, &why);
        if (s == FTH_E_CONFIG) s = FTH_OK; /* repaired by the user's values */
        if (s != FTH_OK) s = FTH_FAIL(err, s, "%s", why.text);
    }
    if (s == FTH_OK && !(*out = print_file(g, cfg))) s = fth__jobs_no_memory(err);
    (void)fth_config_destroy(cfg, NULL);
    return s;
}

/* ---- rows of variants ---- */

/* Read `text` into the row, and see which job it is. Without *good the row has no config. What is
 * worth a notice in a generated text was said of the general one. */
static fth_status fill(fth_jobs *jobs, fth__job_row *row, const char *text, size_t bytes,
                       bool *good, fth_err *err)
{
    *good = false;
    FTH_TRY(fth__jobs_parse(jobs, row->shown_file, text, bytes, &row->config, err));
    if (!row->config) return FTH_OK;
    const bool notices = text != row->text;
    fth_status s = fth__jobs_check(jobs, row->config, row->job.instrument, notices, good, err);
    if (s == FTH_OK && *good) s = fth__jobs_identify(jobs, row, good, err);
    if (s == FTH_OK && *good) return FTH_OK;
    const fth_status end = fth_config_destroy(row->config, err);
    row->config = NULL;
    *good = false;
    return s != FTH_OK ? s : end;
}

/* Put the file that is there in the place of what would be generated. */
static fth_status use_kept(fth_jobs *jobs, fth__job_row *row, file_state state, const char *text,
                           size_t bytes, bool *good, fth_err *err)
{
    fth__job_row kept = *row;
    const fth_place at = {.file = row->shown_file};
    static const char hint[] = "generate it again with force, or give it another name and use it "
                               "by itself";
    kept.config = NULL;
    FTH_TRY(fill(jobs, &kept, text, bytes, good, err));
    if (!*good) return FTH_OK;
    const char *instrument = fth_config_peek(kept.config, "instrument");
    fth_status s = FTH_OK;
    const fth_instrument *i = row->job.instrument;
    const bool is_general = i->general && i->general(kept.config);
    *good = strcmp(kept.job.output_dir, row->job.output_dir) == 0 &&
            strcmp(kept.job.model, row->job.model) == 0 &&
            (!instrument || strcmp(instrument, i->name) == 0) && !is_general;
    if (*good) {
        s = fth__jobs_complain(jobs, true, at, NULL, err, "%s; it is used as it is",
                               state == EDITED ? "it was edited since it was generated"
                                               : "it was not generated, but written by hand");
        (void)fth_config_destroy(row->config, NULL);
        row->config = kept.config;
        row->kept = true;
        return s;
    }
    if (is_general)
        s = fth__jobs_complain(jobs, false, at, hint, err,
                               "it stands for '%s' of %s, but is general itself",
                               row->variant->name, row->shown);
    else
        s = fth__jobs_complain(
            jobs, false, at, hint, err,
            "it stands for '%s' of %s, but is another job: %s %s in %s, not %s %s in %s",
            row->variant->name, row->shown, instrument ? instrument : i->name, kept.job.model,
            kept.job.output_dir, i->name, row->job.model, row->job.output_dir);
    (void)fth_config_destroy(kept.config, NULL);
    return s;
}

static fth_status keep_or_replace(fth_jobs *jobs, fth__job_row *row, bool *good, fth_err *err)
{
    char *text = NULL;
    size_t bytes = 0;
    file_state state = ABSENT;
    if (jobs->opt.force) return FTH_OK;
    FTH_TRY(inspect(jobs->mem, row->job.config_path, row->text, &state, &text, &bytes, err));
    fth_status s = FTH_OK;
    if (state == EDITED || state == FOREIGN) s = use_kept(jobs, row, state, text, bytes, good, err);
    fth__heap_free(jobs->mem, text);
    return s;
}

/* "svgp.yaml" beside a path. */
static const char *beside(fth_jobs *jobs, const char *path, const char *name)
{
    const char *leaf = fth__path_leaf(path);
    return fth__store_print(&jobs->texts, "%.*s%s.yaml", (int)(leaf - path), path, name);
}

static fth_status add_row(const general *g, fth__job_row *row, fth_err *err)
{
    fth_jobs *jobs = g->jobs;
    bool good = false;
    FTH_TRY(check_general(g, &good, err));
    if (!good) return FTH_OK;
    FTH_TRY(make_text(g, &row->text, err));
    FTH_TRY(fill(jobs, row, row->text, strlen(row->text), &good, err));
    if (!good) return FTH_OK;
    fth_status s = keep_or_replace(jobs, row, &good, err);
    if (s == FTH_OK && good) s = fth__jobs_add(jobs, row, err);
    if (s != FTH_OK || !good) (void)fth_config_destroy(row->config, NULL);
    return s;
}

fth_status fth__jobs_add_variant(fth_jobs *jobs, const fth__found *file, const fth_variant *variant,
                                 int number, const char *text, size_t bytes, fth_err *err)
{
    const char *path = beside(jobs, file->path, variant->name);
    fth__job_row row = {.job = {.instrument = file->instrument, .general_path = file->path},
                        .shown = file->shown,
                        .shown_file = beside(jobs, file->shown, variant->name),
                        .variant = variant,
                        .order = fth__jobs_order(jobs, file, number)};
    const general g = {
        jobs, file,  variant,
        text, bytes, fth__store_print(&jobs->texts, "%s (%s)", file->shown, variant->name)};
    if (!path || !row.shown_file || !g.place) return fth__jobs_no_memory(err);
    fth__canonical c;
    FTH_TRY(fth__path_canonical(&jobs->texts, jobs->opt.cwd, path, &c, err));
    row.job.config_path = c.path;
    int64_t at = jobs->n;
    FTH_TRY(fth__index_add(&jobs->variants, c.path, &at, err));
    return add_row(&g, &row, err);
}

/* ---- writing ---- */

static fth_status write_text(fth_mem *mem, const fth__job_row *row, fth_err *err)
{
    fth__writer w;
    fth_status s = fth__writer_open(&w, mem, row->job.config_path, err);
    if (s == FTH_OK) s = fth__writer_write(&w, 0, strlen(row->text), row->text, err);
    if (s == FTH_OK) s = fth__writer_commit(&w, NULL, err);
    fth__writer_abandon(&w);
    if (s == FTH_E_FILE_WRITE)
        fth_err_hint(err,
                     "the files of the models are written beside %s: make its folder "
                     "writable, or copy the config to one that is",
                     row->shown);
    return s;
}

/* The row was read from a file that is now replaced. */
static fth_status read_again(fth_jobs *jobs, fth__job_row *row, fth_err *err)
{
    fth__job_row new = *row;
    bool good = false;
    new.config = NULL;
    FTH_TRY(fill(jobs, &new, row->text, strlen(row->text), &good, err));
    if (!good) return FTH_FAIL(err, FTH_E_CONFIG, "%s: it has mistakes now", row->shown);
    (void)fth_config_destroy(row->config, NULL);
    row->config = new.config;
    row->job.config = row->config;
    row->kept = false;
    return FTH_OK;
}

static fth_status generate(fth_jobs *jobs, fth__job_row *row, bool force, bool *written,
                           fth_err *err)
{
    file_state state = ABSENT;
    char *text = NULL;
    size_t bytes = 0;
    *written = false;
    if (!row->text || (row->kept && !force)) return FTH_OK;
    FTH_TRY(inspect(jobs->mem, row->job.config_path, row->text, &state, &text, &bytes, err));
    const size_t first_line = strcspn(row->text, "\n"); /* names the general config */
    if (state == OURS && strncmp(text, row->text, first_line) != 0)
        fth_log_line(&jobs->opt.log, FTH_LOG_WARN, "%s: it was generated from another file, now %s",
                     row->shown_file, row->shown);
    fth__heap_free(jobs->mem, text);
    if ((state == EDITED || state == FOREIGN) && !force) {
        FTH_FAIL(err, FTH_E_CONFIG, "%s: somebody wrote it while the jobs were being read",
                 row->shown_file);
        fth_err_hint(err, "start again: it will be read then");
        return FTH_E_CONFIG;
    }
    if (row->kept) FTH_TRY(read_again(jobs, row, err));
    if (state == SAME) return FTH_OK;
    FTH_TRY(write_text(jobs->mem, row, err));
    *written = true;
    return FTH_OK;
}

fth_status fth_jobs_generate(fth_jobs *jobs, bool force, int64_t *n, fth_err *err)
{
    if (n) *n = 0;
    if (!jobs) return FTH_FAIL(err, FTH_E_USAGE, "no jobs were given");
    for (int64_t i = 0; i < jobs->n; i++) {
        bool written = false;
        FTH_TRY(generate(jobs, &jobs->row[i], force || jobs->opt.force, &written, err));
        if (n && written) ++*n;
    }
    return FTH_OK;
}
