/* settings.c - settings of a model: from a config, to text and back, all from settings.def. */
#include "../spatial.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- the table ---- */

typedef enum field_type { FIELD_INT, FIELD_REAL, FIELD_BOOL, FIELD_CHOICE } field_type;

static const struct {
    const char *name, *key, *older;
    field_type type;
    sp_family family;
    size_t at;
} rows[] = {
#define SP_SETTING(field, type, key, family, older)                                                \
    {#field, key, older, FIELD_##type, SP_FAMILY_##family, offsetof(sp_settings, field)},
#include "../settings.def"
#undef SP_SETTING
};
enum { ROWS = sizeof rows / sizeof rows[0] };

int sp_settings_count(void)
{
    return ROWS;
}

const char *sp_setting_name(int i)
{
    return rows[i].name;
}

const char *sp_setting_key(int i)
{
    return rows[i].key;
}

sp_family sp_setting_family(int i)
{
    return rows[i].family;
}

bool sp_setting_is_text(int i)
{
    return rows[i].type == FIELD_CHOICE;
}

const char *sp_setting_older(int i)
{
    return rows[i].older;
}

static void *field_of(sp_settings *s, int i)
{
    return (char *)s + rows[i].at;
}

/* The choices of a key, from its row of the schema. */
static const char *words_of(int i)
{
    for (int64_t k = 0; k < sp_schema.n_keys; k++)
        if (strcmp(sp_schema.key[k].name, rows[i].key) == 0) return sp_schema.key[k].choices;
    return "";
}

/* Word number n of a list, and its length; NULL beyond the last. */
static const char *word_at(const char *words, int64_t n, size_t *length)
{
    const char *w = words;
    for (;; n--) {
        w += strspn(w, " ");
        *length = strcspn(w, " ");
        if (*length == 0) return NULL;
        if (n == 0) return w;
        w += *length;
    }
}

static int64_t find_word(const char *words, const char *word)
{
    size_t length;
    for (int64_t i = 0;; i++) {
        const char *w = word_at(words, i, &length);
        if (!w) return -1;
        if (strlen(word) == length && memcmp(w, word, length) == 0) return i;
    }
}

const char *sp_setting_get(const sp_settings *s, int i, char *text, size_t bytes)
{
    const void *at = (const char *)s + rows[i].at;
    size_t length = 0;
    switch (rows[i].type) {
    case FIELD_INT: snprintf(text, bytes, "%" PRId64, *(const int64_t *)at); break;
    case FIELD_BOOL: snprintf(text, bytes, "%s", *(const bool *)at ? "true" : "false"); break;
    case FIELD_CHOICE: {
        const char *w = word_at(words_of(i), *(const int64_t *)at, &length);
        snprintf(text, bytes, "%.*s", (int)length, w ? w : "");
        break;
    }
    case FIELD_REAL:
        /* the shortest text that parses to the same number */
        for (int digits = 1; digits <= 17; digits++) {
            fth_number_format(text, bytes, *(const double *)at, digits);
            if (fth_strtod(text, NULL) == *(const double *)at) break;
        }
        break;
    }
    return text;
}

bool sp_setting_is_implied(const sp_settings *s, int i)
{
    char text[64];
    return rows[i].older && strcmp(sp_setting_get(s, i, text, sizeof text), rows[i].older) == 0;
}

bool sp_setting_set(sp_settings *s, int i, const char *text)
{
    void *at = field_of(s, i);
    if (rows[i].type == FIELD_BOOL) {
        const bool yes = strcmp(text, "true") == 0;
        if (!yes && strcmp(text, "false") != 0) return false;
        *(bool *)at = yes;
        return true;
    }
    if (rows[i].type == FIELD_CHOICE) {
        const int64_t word = find_word(words_of(i), text);
        if (word >= 0) *(int64_t *)at = word;
        return word >= 0;
    }
    return rows[i].type == FIELD_REAL ? fth_real_parse(text, at) : fth_int_parse(text, at);
}

/* ---- from a config ---- */

static void read_field(sp_settings *s, int i, const fth_config *cfg)
{
    void *at = field_of(s, i);
    if (rows[i].key[0] == '\0' || !fth_config_has(cfg, rows[i].key)) return;
    switch (rows[i].type) {
    case FIELD_INT: *(int64_t *)at = fth_config_int(cfg, rows[i].key); break;
    case FIELD_REAL: *(double *)at = fth_config_real(cfg, rows[i].key); break;
    case FIELD_BOOL: *(bool *)at = fth_config_bool(cfg, rows[i].key); break;
    case FIELD_CHOICE: *(int64_t *)at = fth_config_choice(cfg, rows[i].key); break;
    }
}

static void clamp(int64_t *value, int64_t most, const char *name, const char *of, bool bound,
                  sp_notes *notes)
{
    if (*value <= most) return;
    if (notes && !bound && notes->n < (int)(sizeof notes->text / sizeof notes->text[0]))
        snprintf(notes->text[notes->n++], sizeof notes->text[0],
                 "note: %s %" PRId64 " -> %" PRId64 " (%s)", name, *value, most, of);
    *value = most;
}

static int64_t read_rank(const sp_settings *s, const fth_config *cfg, double extent)
{
    const char *rank = fth_config_text(cfg, "model.rank");
    if (strcmp(rank, "K") == 0) return s->K;
    if (strcmp(rank, "spectral") != 0) return strtoll(rank, NULL, 10);
    return extent > 0 ? sp_spectral_rank(s->lengthscale, extent, s->cells) : s->K;
}

/* A model without positions has no other factors than n_components. */
static void clamp_nonspatial(sp_settings *s, sp_notes *notes)
{
    clamp(&s->nonspatial_components, 0, "nonspatial_components",
          "pnmf has no spatial factors: n_components are all", false, notes);
}

/* Steps beyond 1 go past the optimum of the prior's part (model 20.3). */
static void note_natural(const sp_settings *s, const sp_sizes *z, sp_notes *notes)
{
    const double step = 0.1 * s->learning_rate * ((double)s->cells / (double)s->batch_size);
    if (!notes || !sp_is_natural(s) || z->bound || step <= 1.0 || notes->n >= 8) return;
    snprintf(notes->text[notes->n++], sizeof notes->text[0],
             "note: natural steps of 0.1 learning_rate cells/batch_size = %.3g are above 1: lower "
             "learning_rate, or take larger batches",
             step);
}

/* Lengths follow the data (model 10.1). */
static void clamp_all(sp_settings *s, const fth_config *cfg, const sp_sizes *z, double extent,
                      sp_notes *notes)
{
    const sp_kind_info *kind = &sp_kinds[s->kind];
    if (s->batch_size == 0) s->batch_size = s->cells;
    if (s->y_batch_size == 0) s->y_batch_size = s->genes;
    clamp(&s->batch_size, s->cells, "batch_size", "cells", z->bound, notes);
    clamp(&s->y_batch_size, s->genes, "y_batch_size", "genes", z->bound, notes);
    if (kind->spatial && !kind->local)
        clamp(&s->M, s->cells, "num_inducing", "cells", z->bound, notes);
    else
        s->M = kind->local ? s->cells : 0;
    if (kind->local) {
        clamp(&s->K, s->cells - 1, "K", "cells other than the cell itself", z->bound, notes);
        if (z->least_section > 0)
            clamp(&s->K, z->least_section - 1, "K",
                  "cells of the smallest section other than the cell itself", z->bound, notes);
        s->R = read_rank(s, cfg, extent);
        if (fth_config_has(cfg, "model.rank_cap"))
            clamp(&s->R, fth_config_int(cfg, "model.rank_cap"), "rank", "model.rank_cap", z->bound,
                  notes);
        clamp(&s->R, s->cells, "rank", "cells", z->bound, notes);
    } else {
        s->K = s->R = 0;
    }
    if (!kind->spatial) clamp_nonspatial(s, notes);
    if (notes && sp_factors(s) > s->genes && !z->bound && notes->n < 8)
        snprintf(notes->text[notes->n++], sizeof notes->text[0],
                 "note: n_components %" PRId64 " is more than the %" PRId64 " genes", sp_factors(s),
                 s->genes);
    if (notes && s->train_lengthscale && !s->local && notes->n < 8 &&
        (s->parametrization != SP_WHITENED || (s->scale_kl_NM && s->M < s->cells)))
        snprintf(notes->text[notes->n++], sizeof notes->text[0],
                 "note: lengthscales are estimated best with parametrization: whitened and "
                 "scale_kl_NM: false");
    if (notes && s->train_lengthscale && s->local && notes->n < 8)
        snprintf(notes->text[notes->n++], sizeof notes->text[0],
                 "note: local models find lengthscales of smooth factors too short; models with "
                 "inducing points find them better");
    if (s->mode == SP_LOWER_BOUND) s->E = 1;
    note_natural(s, z, notes);
}

static fth_status check_sizes(const sp_settings *s, const sp_sizes *z, fth_err *err)
{
    fth_status st = FTH_OK;
    if (s->cells < 1 || s->genes < 1)
        st = FTH_FAIL(err, FTH_E_CONFIG,
                      "the data have %" PRId64 " cells and %" PRId64
                      " genes: there is nothing to train on",
                      s->cells, s->genes);
    else if (s->groups && s->n_groups < 2 && !z->bound) {
        st = FTH_FAIL(err, FTH_E_CONFIG,
                      "model.groups is true, but the data have %" PRId64 " group of cells",
                      s->n_groups);
        fth_err_hint(err, "set preprocessing.group_column, lower preprocessing.min_group_size, or "
                          "choose a model without groups");
    } else if (z->sections > 0 && z->least_section < SP_SECTION_LEAST && !z->bound) {
        st = FTH_FAIL(err, FTH_E_CONFIG,
                      "the smallest section has %" PRId64 " training cells; at least %d are needed",
                      z->least_section, SP_SECTION_LEAST);
        fth_err_hint(err, "leave it out with preprocessing.sections, or lower "
                          "training.holdout_fraction");
    } else if (s->spatial && !s->local && s->M < z->sections) {
        st = FTH_FAIL(err, FTH_E_CONFIG,
                      "model.num_inducing is %" PRId64 ", but the data have %" PRId64
                      " sections, each with points of its own",
                      s->M, z->sections);
        fth_err_hint(err, "set model.num_inducing to at least %" PRId64, z->sections);
    } else if (s->local && s->cells < 2)
        st = FTH_FAIL(err, FTH_E_CONFIG,
                      "a local model needs at least 2 cells, and the data have %" PRId64, s->cells);
    return st;
}

fth_status sp_settings_from(sp_settings *out, const fth_config *cfg, const sp_sizes *sizes,
                            double extent, sp_notes *notes, fth_err *err)
{
    *out = (sp_settings){0};
    if (notes) notes->n = 0;
    for (int i = 0; i < ROWS; i++) read_field(out, i, cfg);
    out->cells = sizes->cells;
    out->genes = sizes->genes;
    out->n_groups = sizes->groups;
    out->n_sections = sizes->sections;
    out->section_gap = sizes->section_gap;
    out->fixed_W = fth_config_has(cfg, "model.loadings_file");
    sp_settings_derive(out);
    if (!out->spatial) out->train_lengthscale = false;
    if (!out->train_lengthscale) out->lengthscale_rate = out->lengthscale_warmup = 0;
    FTH_TRY(check_sizes(out, sizes, err));
    clamp_all(out, cfg, sizes, extent, notes);
    return FTH_OK;
}

/* ---- trained lengthscales ---- */

double sp_ell_start(const sp_settings *s)
{
    return log(fabs(s->lengthscale));
}

int64_t sp_ell_warmup(const sp_settings *s)
{
    return s->train_lengthscale ? (int64_t)floor(s->lengthscale_warmup * (double)s->max_iter) : 0;
}

/* ---- the objective ---- */

double sp_weight_ell(const sp_settings *s)
{
    const double genes = s->scale_ll_D ? (double)s->genes / (double)s->y_batch_size : 1.0;
    return genes * ((double)s->cells / (double)s->batch_size);
}

double sp_weight_kl(const sp_settings *s)
{
    if (s->spatial && !s->local) return s->scale_kl_NM ? (double)s->cells / (double)s->M : 1.0;
    return sp_weight_kl_cells(s);
}

double sp_weight_kl_cells(const sp_settings *s)
{
    return (double)s->cells / (double)s->batch_size;
}
