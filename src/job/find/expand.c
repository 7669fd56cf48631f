/* expand.c - from config files to jobs: read every file, report every mistake, then all or nothing.
 *
 * Two passes over the files. The first reads them and expands the general ones, so that the second
 * knows which of the others were generated from them: those are the same jobs, not further ones.
 */
#include "base/assert.h"
#include "base/str.h"
#include "config/node.h"
#include "config/read.h"
#include "config/schema.h"
#include "io/file.h"
#include "job/find/limit.h"
#include "job/find/over.h"
#include "job/find/path.h"
#include "job/find/slurm.h"
#include "mem/heap.h"

#include <stdlib.h>
#include <string.h>

/* MODEL_BYTES: of the name of a model, which is a folder. VARIANTS of one config: far more jobs
 * than anybody runs, so a config that spans more is a mistake. */
enum { MODEL_BYTES = 128, VARIANTS = 1 << 16 };

fth_status fth__jobs_no_memory(fth_err *err)
{
    return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the list of jobs");
}

/* ---- mistakes ---- */

fth_status fth__jobs_say(fth_jobs *jobs, const fth_config_mistake *m, fth_err *err)
{
    char line[FTH_ERR_TEXT];
    fth_config_mistake_format(m, line, sizeof line);
    const char *kept = fth__store_text(&jobs->texts, line, strlen(line));
    if (!kept) return fth__jobs_no_memory(err);
    int64_t number = jobs->said.n;
    const int64_t before = jobs->said.n;
    FTH_TRY(fth__index_add(&jobs->said, kept, &number, err));
    if (jobs->said.n == before) return FTH_OK;
    if (!m->notice && jobs->n_mistakes++ == 0) jobs->first_line = kept;
    fth_log_line(&jobs->opt.log, m->notice ? FTH_LOG_WARN : FTH_LOG_ERROR, "%s", line);
    if (jobs->opt.mistake) jobs->opt.mistake(jobs->opt.user, m);
    return FTH_OK;
}

fth_status fth__jobs_complain(fth_jobs *jobs, bool notice, fth_place at, const char *hint,
                              fth_err *err, const char *fmt, ...)
{
    char text[FTH_ERR_TEXT];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return fth__jobs_say(jobs,
                         &(fth_config_mistake){.kind = FTH_MISTAKE_CHECK,
                                               .notice = notice,
                                               .at = at,
                                               .key = "",
                                               .expected = text,
                                               .found = "",
                                               .hint = hint ? hint : ""},
                         err);
}

/* The reader's text starts with its location, which a mistake has as a separate field. */
static fth_status say_damaged(fth_jobs *jobs, const char *shown, const fth_err *why, fth_err *err)
{
    const size_t n = strlen(shown);
    fth_place at = {.file = shown};
    const char *text = why->text;
    int used = 0;
    if (strncmp(text, shown, n) == 0 && text[n] == ':') {
        text += n + 1;
        if (sscanf(text, "%d:%d:%n", &at.line, &at.column, &used) == 2 && used > 0)
            text += used;
        else
            at.line = at.column = 0;
        text += strspn(text, " ");
    }
    return fth__jobs_complain(jobs, false, at, why->hint, err, "%s", text);
}

/* ---- one config ---- */

fth_status fth__jobs_parse(fth_jobs *jobs, const char *shown, const char *path, const char *text,
                           size_t bytes, fth_config **out, fth_err *err)
{
    fth_err why = {0};
    FTH_TRY(fth_config_create(out, jobs->mem, err));
    fth_status s = fth__config_parse_file(*out, shown, path, text, bytes, &why);
    const bool damaged = s == FTH_E_CONFIG_SYNTAX;
    if (damaged)
        s = say_damaged(jobs, shown, &why, err);
    else if (s != FTH_OK)
        s = FTH_FAIL(err, s, "%s", why.text);
    for (int i = 0; s == FTH_OK && !damaged && i < jobs->opt.n_sets; i++)
        s = fth_config_set(*out, jobs->opt.set[i], err);
    if (s == FTH_OK && !damaged) s = fth__jobs_add_over(jobs, *out, err);
    if (s != FTH_OK || damaged) {
        (void)fth_config_destroy(*out, NULL);
        *out = NULL;
    }
    return s;
}

static const fth_instrument *find_instrument(const fth_jobs *jobs, const char *name)
{
    for (int i = 0; i < jobs->opt.n_instruments; i++)
        if (strcmp(jobs->opt.instrument[i]->name, name) == 0) return jobs->opt.instrument[i];
    return NULL;
}

/* Where the config by itself would write: known when it was checked, which is done twice for that.
 * NULL: it has mistakes, which are reported when it is checked for good. */
static fth_status find_own_dir(fth_jobs *jobs, fth_config *cfg, const char **out, fth_err *err)
{
    const char *name = fth_config_peek(cfg, "instrument");
    const fth_instrument *in = find_instrument(jobs, name ? name : "spatial");
    const fth_config_options opt = {
        .lenient = true, .lookup = jobs->opt.lookup, .cwd = jobs->opt.cwd, .user = jobs->opt.user};
    *out = NULL;
    if (!in || fth__schema_find(in->schema, "output_dir") < 0) return FTH_OK;
    const fth_status s = fth_config_check(cfg, in->schema, &opt, NULL);
    if (s == FTH_E_NOMEM) return fth__jobs_no_memory(err);
    if (s != FTH_OK) return FTH_OK;
    const char *dir = fth_config_text(cfg, "output_dir");
    *out = fth__store_text(&jobs->texts, dir, strlen(dir));
    return *out ? FTH_OK : fth__jobs_no_memory(err);
}

fth_status fth__jobs_parse_one(fth_jobs *jobs, const char *shown, const char *path,
                               const char *text, size_t bytes, fth_config **out,
                               const char *const **set, int *n_sets, fth_err *err)
{
    FTH_TRY(fth__jobs_parse(jobs, shown, path, text, bytes, out, err));
    *set = NULL;
    *n_sets = 0;
    if (jobs->over.n == 0 || !*out) return FTH_OK;
    fth_config *first = NULL;
    const char *dir = NULL;
    fth_status s = fth__jobs_parse(jobs, shown, path, text, bytes, &first, err);
    if (s == FTH_OK && first) s = find_own_dir(jobs, first, &dir, err);
    (void)fth_config_destroy(first, NULL);
    if (s == FTH_OK && dir) s = fth__jobs_over_sets(jobs, dir, set, n_sets, err);
    if (s == FTH_OK && *n_sets > 0)
        s = fth__config_set_as(*out, "--over", (*set)[*n_sets - 1], err);
    if (s == FTH_OK) return FTH_OK;
    (void)fth_config_destroy(*out, NULL);
    *out = NULL;
    return s;
}

fth_status fth__jobs_check(fth_jobs *jobs, fth_config *cfg, const fth_instrument *instrument,
                           bool notices, bool *good, fth_err *err)
{
    const fth_config_options opt = {.lenient = jobs->opt.lenient,
                                    .lookup = jobs->opt.lookup,
                                    .cwd = jobs->opt.cwd,
                                    .user = jobs->opt.user};
    fth_err why = {0};
    const fth_status s = fth_config_check(cfg, instrument->schema, &opt, &why);
    *good = s == FTH_OK;
    if (s != FTH_OK && s != FTH_E_CONFIG) return FTH_FAIL(err, s, "%s", why.text);
    fth_config_mistake m;
    for (int64_t i = 0; fth_config_get_mistake(cfg, i, &m); i++)
        if (notices || !m.notice) FTH_TRY(fth__jobs_say(jobs, &m, err));
    if (!*good) return FTH_OK;
    FTH_TRY(fth__limits_check_config(jobs, cfg, instrument, good, err));
    return fth__slurm_check_config(jobs, cfg, instrument, good, err);
}

/* ---- identity of one config ---- */

/* Why a name cannot be that of a folder beside logs and .fathom; NULL: it can. */
static const char *wrong_model(const char *name)
{
    if (!name[0]) return "it is empty";
    if (name[0] == '.') return "it starts with a dot";
    if (strchr(name, '/')) return "it has a slash";
    if (strcmp(name, "logs") == 0) return "that folder is for logs";
    for (const char *s = name; *s; s++)
        if ((unsigned char)*s <= ' ' || *s == 0x7f) return "it has a blank";
    return NULL;
}

static fth_status find_model(fth_jobs *jobs, fth__job_row *row, bool *good, fth_err *err)
{
    char model[MODEL_BYTES] = "";
    const fth_instrument *instrument = row->job.instrument;
    const fth_place at = {.file = row->shown};
    fth_err why = {0};
    if (!instrument->model && !instrument->model_key) {
        row->job.model = instrument->name;
        return FTH_OK;
    }
    fth_status s = FTH_OK;
    if (instrument->model)
        s = instrument->model(row->config, model, sizeof model, &why);
    else
        snprintf(model, sizeof model, "%s", fth_config_text(row->config, instrument->model_key));
    if (s == FTH_E_NOMEM) return FTH_FAIL(err, s, "%s", why.text);
    const char *wrong = s == FTH_OK ? wrong_model(model) : NULL;
    *good = s == FTH_OK && !wrong;
    if (s != FTH_OK) return fth__jobs_complain(jobs, false, at, why.hint, err, "%s", why.text);
    if (wrong)
        return fth__jobs_complain(jobs, false, at, NULL, err,
                                  "the model is called '%s', which cannot be a folder: %s", model,
                                  wrong);
    row->job.model = fth__store_text(&jobs->texts, model, strlen(model));
    return row->job.model ? FTH_OK : fth__jobs_no_memory(err);
}

static fth_status find_folder(fth_jobs *jobs, fth__job_row *row, bool *good, fth_err *err)
{
    const char *written = fth_config_text(row->config, "output_dir");
    fth_place at = fth_config_where(row->config, "output_dir");
    if (!fth_config_is_given(row->config, "output_dir")) at = (fth_place){.file = row->shown};
    fth__canonical c;
    fth_err why = {0};
    *good = false;
    if (!written[0]) return fth__jobs_complain(jobs, false, at, NULL, err, "output_dir is empty");
    const fth_status s = fth__path_canonical(&jobs->texts, jobs->opt.cwd, written, &c, &why);
    if (s == FTH_E_NOMEM) return FTH_FAIL(err, s, "%s", why.text);
    if (s != FTH_OK)
        return fth__jobs_complain(jobs, false, at, NULL, err, "output_dir: %s", why.text);
    if (c.block)
        return fth__jobs_complain(jobs, false, at, NULL, err,
                                  "output_dir %s: there is a file at %s, a folder is needed",
                                  written, c.block);
    row->job.output_dir = c.path;
    *good = true;
    return FTH_OK;
}

fth_status fth__jobs_identify(fth_jobs *jobs, fth__job_row *row, bool *good, fth_err *err)
{
    bool good_folder = false;
    *good = true;
    FTH_TRY(find_model(jobs, row, good, err));
    FTH_TRY(find_folder(jobs, row, &good_folder, err));
    *good = *good && good_folder;
    return FTH_OK;
}

fth_status fth__jobs_add(fth_jobs *jobs, const fth__job_row *row, fth_err *err)
{
    FTH_TRY(fth__grow(jobs->mem, &jobs->row, &jobs->cap, jobs->n + 1, err));
    FTH_ASSERT(row->config && row->job.instrument && row->job.model && row->job.output_dir &&
               row->job.config_path);
    fth__job_row *new = &jobs->row[jobs->n++];
    jobs->n_rows = jobs->n;
    *new = *row;
    new->job.config = new->config;
    return FTH_OK;
}

/* ---- the instrument of a config ---- */

static void list_instruments(const fth_jobs *jobs, char *text, size_t bytes)
{
    fth__text t;
    fth__text_init(&t, text, bytes);
    for (int i = 0; i < jobs->opt.n_instruments; i++)
        fth__text_add(&t, "%s%s", i ? " " : "", jobs->opt.instrument[i]->name);
    fth__text_mark_cut(&t);
}

static fth_status say_unknown(fth_jobs *jobs, const fth_config *cfg, const char *name, fth_err *err)
{
    char known[400], nearest[100] = "";
    size_t n = 0;
    list_instruments(jobs, known, sizeof known);
    const fth_place at = fth__config_peek_place(cfg, "instrument");
    if (!name)
        return fth__jobs_complain(jobs, false, at, "write instrument: NAME", err,
                                  "it names no instrument, and 'spatial', which such configs are "
                                  "for, is not in this build; known are: %s",
                                  known);
    const int i = fth_word_nearest(known, name);
    const char *word = i < 0 ? NULL : fth__word(known, i, &n);
    if (word) snprintf(nearest, sizeof nearest, "%.*s", (int)n, word);
    char expected[440], found[120];
    snprintf(expected, sizeof expected, "one of %s", known);
    snprintf(found, sizeof found, "'%.100s'", name);
    return fth__jobs_say(jobs,
                         &(fth_config_mistake){.kind = FTH_MISTAKE_CHOICE,
                                               .at = at,
                                               .key = "instrument",
                                               .expected = expected,
                                               .found = found,
                                               .nearest = word ? nearest : NULL,
                                               .hint = ""},
                         err);
}

/* NULL: reported and counted. */
static fth_status choose_instrument(fth_jobs *jobs, const fth_config *cfg,
                                    const fth_instrument **out, fth_err *err)
{
    const char *name = fth_config_peek(cfg, "instrument");
    *out = find_instrument(jobs, name ? name : "spatial");
    if (!*out) return say_unknown(jobs, cfg, name, err);
    if (fth__schema_find((*out)->schema, "output_dir") < 0)
        return FTH_FAIL(err, FTH_E_USAGE, "the table of instrument '%s' has no output_dir",
                        (*out)->name);
    if (name) return FTH_OK;
    return fth__jobs_complain(jobs, true, fth__config_peek_place(cfg, "instrument"), NULL, err,
                              "it names no instrument and is taken as 'spatial'");
}

/* ---- files ---- */

static fth_status read_text(fth_jobs *jobs, const fth__found *file, char **out, size_t *bytes,
                            fth_err *err)
{
    fth_file *f = NULL;
    void *text = NULL;
    *out = NULL;
    FTH_TRY(fth_file_open(&f, jobs->mem, file->path, err));
    fth_status s = FTH_OK;
    if (f->bytes > FTH__CONFIG_BYTES)
        s = fth__jobs_complain(jobs, false, (fth_place){.file = file->shown}, NULL, err,
                               "it has %llu bytes, a config has at most %d; is it a data file?",
                               (unsigned long long)f->bytes, (int)FTH__CONFIG_BYTES);
    else
        s = fth__heap_take(jobs->mem, (int64_t)f->bytes + 1, 1, &text, err);
    if (s == FTH_OK && text) s = fth_file_read(f, 0, f->bytes, text, "the config", err);
    *bytes = (size_t)f->bytes;
    fth_file_close(f);
    if (s == FTH_OK)
        *out = text;
    else
        fth__heap_free(jobs->mem, text);
    return s;
}

/* A copy that lives as long as the jobs; NULL when there is no memory. */
static const fth_variant *keep_variant(fth_jobs *jobs, const fth_variant *v)
{
    fth_variant *kept = fth__store_take(&jobs->texts, sizeof *kept);
    if (!kept || !(kept->name = fth__store_text(&jobs->texts, v->name, strlen(v->name))))
        return NULL;
    for (size_t i = 0; i < sizeof v->set / sizeof v->set[0]; i++)
        if (v->set[i] &&
            !(kept->set[i] = fth__store_text(&jobs->texts, v->set[i], strlen(v->set[i]))))
            return NULL;
    return kept;
}

/* Number v of the choices of the key that names the model. */
static bool choose_variant(const fth_instrument *in, int v, fth_variant_made *out)
{
    size_t n = 0;
    const char *word = NULL;
    for (int64_t k = 0; in->model_key && k < in->schema->n_keys; k++)
        if (strcmp(in->schema->key[k].name, in->model_key) == 0)
            word = fth__word(in->schema->key[k].choices, v, &n);
    if (!word) return false;
    snprintf(out->text, sizeof out->text, "%s=%.*s", in->model_key, (int)n, word);
    out->variant = (fth_variant){.name = strchr(out->text, '=') + 1, .set = {out->text}};
    return true;
}

/* Variants that the config itself spans, or the table of keys. */
static fth_status expand_made(fth_jobs *jobs, fth__found *file, const char *text, size_t bytes,
                              fth_err *err)
{
    fth_variant_made made;
    const fth_instrument *in = file->instrument;
    for (int v = 0; in->expand ? in->expand(file->config, v, &made) : choose_variant(in, v, &made);
         v++) {
        if (v == VARIANTS)
            return fth__jobs_complain(jobs, false, (fth_place){.file = file->shown}, NULL, err,
                                      "it stands for more than %d jobs", (int)VARIANTS);
        const fth_variant *variant = keep_variant(jobs, &made.variant);
        if (!variant) return fth__jobs_no_memory(err);
        FTH_TRY(fth__jobs_add_variant(jobs, file, variant, v, text, bytes, err));
    }
    return FTH_OK;
}

static fth_status expand_general(fth_jobs *jobs, fth__found *file, const char *text, size_t bytes,
                                 fth_err *err)
{
    const fth_instrument *instrument = file->instrument;
    const bool skip = file->searched && jobs->opt.skip_general;
    fth_status s = FTH_OK;
    const bool made = instrument->expand || instrument->n_variants == 0;
    if (!skip && made) s = expand_made(jobs, file, text, bytes, err);
    const fth_status end = fth_config_destroy(file->config, err);
    file->config = NULL;
    FTH_TRY(s);
    FTH_TRY(end);
    for (int v = 0; !skip && !made && v < instrument->n_variants; v++)
        FTH_TRY(fth__jobs_add_variant(jobs, file, &instrument->variant[v], v, text, bytes, err));
    return FTH_OK;
}

/* Files in their order, and the variants of one in theirs. */
int64_t fth__jobs_order(const fth_jobs *jobs, const fth__found *file, int variant)
{
    FTH_ASSERT(file >= jobs->found && file < jobs->found + jobs->n_found);
    FTH_ASSERT(variant >= 0 && variant < VARIANTS);
    return (int64_t)(file - jobs->found) * VARIANTS + variant;
}

static bool is_general(const fth_instrument *i, const fth_config *cfg)
{
    if (i->general) return i->general(cfg);
    return i->model_key && !fth_config_peek(cfg, i->model_key);
}

/* First pass: read, and expand general configs. */
static fth_status open_file(fth_jobs *jobs, fth__found *file, fth_err *err)
{
    char *text = NULL;
    size_t bytes = 0;
    FTH_TRY(read_text(jobs, file, &text, &bytes, err));
    fth_status s = FTH_OK;
    jobs->over.now = file->combination;
    if (text)
        s = fth__jobs_parse_one(jobs, file->shown, file->path, text, bytes, &file->config,
                                &file->set, &file->n_sets, err);
    if (s == FTH_OK && file->config && fth__jobs_is_base(jobs, file)) {
        (void)fth_config_destroy(file->config, NULL);
        file->config = NULL;
    }
    if (s == FTH_OK && file->config)
        s = choose_instrument(jobs, file->config, &file->instrument, err);
    const fth_instrument *i = file->instrument;
    if (s == FTH_OK && i && is_general(i, file->config))
        s = expand_general(jobs, file, text, bytes, err);
    fth__heap_free(jobs->mem, text);
    return s;
}

/* Second pass: check configs that are jobs by themselves. */
static fth_status take_file(fth_jobs *jobs, fth__found *file, fth_err *err)
{
    if (!file->config || !file->instrument) return FTH_OK;
    if (fth__index_find(&jobs->variants, file->path) >= 0) return FTH_OK;
    fth__job_row row = {.job = {.instrument = file->instrument,
                                .config_path = file->path,
                                .set = file->set,
                                .n_sets = file->n_sets},
                        .config = file->config,
                        .shown = file->shown,
                        .order = fth__jobs_order(jobs, file, 0)};
    bool good = false;
    FTH_TRY(fth__jobs_check(jobs, file->config, file->instrument, true, &good, err));
    if (good) FTH_TRY(fth__jobs_identify(jobs, &row, &good, err));
    if (!good) return FTH_OK;
    FTH_TRY(fth__jobs_add(jobs, &row, err));
    file->config = NULL;
    return FTH_OK;
}

/* A file that two paths lead to is one. */
static fth_status drop_repeated(fth_jobs *jobs, fth_err *err)
{
    fth__index seen = {.mem = jobs->mem};
    fth_status s = FTH_OK;
    int64_t kept = 0;
    for (int64_t i = 0; s == FTH_OK && i < jobs->n_found; i++) {
        int64_t number = kept;
        const fth__found file = jobs->found[i];
        s = fth__index_add(&seen, file.path, &number, err);
        if (s == FTH_OK && number < kept)
            s = fth__jobs_complain(jobs, true, (fth_place){.file = file.shown}, NULL, err,
                                   "it is the same file as %s, and is read once",
                                   strcmp(jobs->found[number].shown, file.shown) == 0
                                       ? "one named before"
                                       : jobs->found[number].shown);
        else
            jobs->found[kept++] = file;
    }
    FTH_ASSERT(kept <= jobs->n_found);
    if (s == FTH_OK) jobs->n_found = kept;
    fth__index_clear(&seen);
    return s;
}

static int by_order(const void *a, const void *b)
{
    const fth__job_row *x = a, *y = b;
    return x->order < y->order ? -1 : x->order > y->order;
}

fth_status fth__jobs_expand(fth_jobs *jobs, fth_err *err)
{
    FTH_TRY(drop_repeated(jobs, err));
    FTH_TRY(fth__jobs_find_bases(jobs, err));
    FTH_TRY(fth__jobs_repeat(jobs, err));
    for (int64_t i = 0; i < jobs->n_found; i++) FTH_TRY(open_file(jobs, &jobs->found[i], err));
    for (int64_t i = 0; i < jobs->n_found; i++) FTH_TRY(take_file(jobs, &jobs->found[i], err));
    if (jobs->n > 1) qsort(jobs->row, (size_t)jobs->n, sizeof *jobs->row, by_order);
    return FTH_OK;
}
