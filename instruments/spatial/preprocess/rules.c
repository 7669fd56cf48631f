/* rules.c - rules of quality control from the config, and genes given by name. */
#include "rules.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *const sp_gene_drop_names[SP_GENE_DROPS] = {
    [SP_GENE_STAYS] = "",          [SP_GENE_FEATURE] = "feature_type",
    [SP_GENE_CELLS] = "min_cells", [SP_GENE_MT] = "mitochondrial",
    [SP_GENE_LIST] = "not_listed", [SP_GENE_VARIABLE] = "not_variable"};

#define KEY(name) "preprocessing." name

sp_rules sp_rules_of(const fth_config *cfg, const sp_loader *loader)
{
    const bool preset = loader->flags & SP_LOAD_QC;
    sp_rules r = {.max_mt = preset ? 20 : -1};
    const bool counts = fth_config_is_given(cfg, KEY("min_counts")),
               cells = fth_config_is_given(cfg, KEY("min_cells")),
               mt = fth_config_is_given(cfg, KEY("filter_mt")),
               share = fth_config_has(cfg, KEY("max_mt_percent")),
               least = fth_config_has(cfg, KEY("min_genes"));
    if (share) r.max_mt = fth_config_real(cfg, KEY("max_mt_percent"));
    if (least) r.min_genes = fth_config_int(cfg, KEY("min_genes"));
    if (preset || counts) r.min_counts = fth_config_int(cfg, KEY("min_counts"));
    if (preset || cells) r.min_cells = fth_config_int(cfg, KEY("min_cells"));
    if (preset || mt) r.filter_mt = fth_config_bool(cfg, KEY("filter_mt"));
    r.listed = fth_config_has(cfg, KEY("genes_file")) || fth_config_count(cfg, KEY("genes")) > 0;
    if (fth_config_has(cfg, KEY("highly_variable")))
        r.variable = fth_config_int(cfg, KEY("highly_variable"));
    if (fth_config_has(cfg, KEY("highly_variable_flavor")))
        r.flavor = (sp_flavor)fth_config_choice(cfg, KEY("highly_variable_flavor"));
    r.idle_flavor = r.variable == 0 && fth_config_has(cfg, KEY("highly_variable_flavor"));
    r.cells = preset || counts || share || least;
    r.genes = preset || cells || mt || r.listed;
    r.more = share || least || r.listed || r.variable > 0 || (!preset && (counts || cells || mt));
    return r;
}

/* ---- keys that act ---- */

bool sp_rules_act(const fth_config *cfg, const sp_loader *l, const char *key, bool given)
{
    const bool preset = l->flags & SP_LOAD_QC;
    const struct {
        const char *name;
        bool acts;
    } rows[] = {{KEY("min_counts"), preset || given},
                {KEY("min_cells"), preset || given},
                {KEY("filter_mt"), preset || given},
                {KEY("min_group_size"), !fth_config_has(cfg, KEY("min_group_fraction"))},
                {KEY("spatial_scale"), fth_config_bool(cfg, KEY("rescale"))},
                {KEY("in_tissue"), l->flags & SP_LOAD_TISSUE},
                {KEY("feature_types"), l->flags & (SP_LOAD_TENX | SP_LOAD_TABLE)},
                {KEY("highly_variable_flavor"), fth_config_has(cfg, KEY("highly_variable"))}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].name, key) == 0) return rows[i].acts;
    return true;
}

/* ---- genes by name ---- */

typedef struct listing {
    const fth_texts *genes;
    const bool *left_out; /* [gene]: of those, which are not taken; NULL: none */
    const char *source;
    bool *wanted;
    int64_t names, unknown;
    bool is_left_out;  /* the first that is unknown is there, but left out */
    char first[3][80]; /* of those that are unknown */
} listing;

typedef struct keyed {
    const char *name;
    int64_t gene;
} keyed;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const keyed *)a)->name, ((const keyed *)b)->name);
}

static void want(listing *l, const keyed *sorted, const char *name)
{
    const keyed key = {.name = name};
    const keyed *found =
        bsearch(&key, sorted, (size_t)fth_texts_count(l->genes), sizeof key, by_name);
    const bool is_left_out = found && l->left_out && l->left_out[found->gene];
    l->names++;
    if (found && !is_left_out) {
        l->wanted[found->gene] = true;
        return;
    }
    if (l->unknown == 0) l->is_left_out = is_left_out;
    if (l->unknown++ < 3) snprintf(l->first[l->unknown - 1], sizeof l->first[0], "%.79s", name);
}

/* The known name that differs least; names with blanks are not compared. */
static const char *nearest(const fth_texts *genes, const char *name)
{
    const char *best = NULL;
    char words[400];
    for (int64_t g = 0; g < fth_texts_count(genes); g++) {
        const char *gene = fth_texts_get(genes, g);
        if (strchr(gene, ' ') || strlen(gene) > 190) continue;
        snprintf(words, sizeof words, "%s%s%s", best ? best : "", best ? " " : "", gene);
        const int k = fth_word_nearest(words, name);
        if (k == (best != NULL)) best = gene;
    }
    return best;
}

static fth_status unknown_genes(const listing *l, const char *key, fth_err *err)
{
    char names[300];
    size_t used = 0;
    for (int i = 0; i < 3 && i < l->unknown; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s'%s'", i ? ", " : "",
                                 l->first[i]);
    if (l->unknown > 3) snprintf(names + used, sizeof names - used, " ...");
    const fth_status s =
        FTH_FAIL(err, FTH_E_FILE_KEY,
                 "%s: %" PRId64 " of the %" PRId64 " names in %s are no genes of it: %s", l->source,
                 l->unknown, l->names, key, names);
    const char *near = l->is_left_out ? NULL : nearest(l->genes, l->first[0]);
    if (l->is_left_out)
        fth_err_hint(err,
                     "'%s' is left out: not all files of preprocessing.paths have it, or its type "
                     "is none of preprocessing.feature_types",
                     l->first[0]);
    else if (near)
        fth_err_hint(err, "perhaps '%s' in place of '%s'", near, l->first[0]);
    else
        fth_err_hint(err, "its first gene is '%s'; take out what it does not have",
                     fth_texts_count(l->genes) > 0 ? fth_texts_get(l->genes, 0) : "");
    return s;
}

/* A name on each line, in the first column of a table between commas or tabs. */
static fth_status read_file(listing *l, const keyed *sorted, fth_mem *mem, const char *path,
                            fth_err *err)
{
    const fth_reader_options unpack = {.unpack = true};
    fth_reader r;
    fth_text_line line;
    char name[512];
    FTH_TRY(fth_reader_open(&r, mem, path, &unpack, err));
    fth_status s = FTH_OK;
    while ((s = fth_reader_next(&r, &line, err)) == FTH_OK && line.text) {
        fth_text_field f = {0};
        if (line.text[0] == '\0' || line.text[0] == '#') continue;
        const char between = strchr(line.text, '\t') ? '\t' : ',';
        if (!fth_text_column_next(&line, between, &f) || f.n == 0 || f.n >= sizeof name) {
            s = fth_reader_fail(&r, &f, "the name of a gene", err);
            break;
        }
        snprintf(name, sizeof name, "%.*s", (int)f.n, f.text);
        want(l, sorted, name);
    }
    fth_reader_close(&r);
    if (s == FTH_OK && l->names == 0)
        s = FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: expected a gene on each line, found none", path);
    return s;
}

fth_status sp_rules_listed(const fth_config *cfg, fth_mem *mem, const fth_texts *genes,
                           const bool *left_out, const char *source, bool *wanted, fth_err *err)
{
    listing l = {.genes = genes, .left_out = left_out, .source = source, .wanted = wanted};
    const int64_t n = fth_texts_count(genes), given = fth_config_count(cfg, KEY("genes"));
    const char *path = fth_config_text_or(cfg, KEY("genes_file"), NULL);
    void *block = NULL;
    memset(wanted, 0, (size_t)n);
    FTH_TRY(
        fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)n * sizeof(keyed), "genes by name", &block, err));
    keyed *sorted = block;
    for (int64_t g = 0; g < n; g++) sorted[g] = (keyed){fth_texts_get(genes, g), g};
    qsort(sorted, (size_t)n, sizeof *sorted, by_name);
    for (int64_t i = 0; i < given; i++) want(&l, sorted, fth_config_text_at(cfg, KEY("genes"), i));
    fth_status s = path ? read_file(&l, sorted, mem, path, err) : FTH_OK;
    (void)fth_mem_release(mem, block, NULL);
    if (s == FTH_OK && l.unknown > 0) s = unknown_genes(&l, path ? path : KEY("genes"), err);
    return s;
}
