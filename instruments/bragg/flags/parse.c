/* parse.c - from words to settings, in the two modes of reading.
 *
 * With substring-flags a token is every flag whose text it contains, values are whatever follows,
 * and unknown words are ignored: 'a -misset_seed' is also a '-misset'. Without, names are exact,
 * and every word has to be accounted for.
 */
#include "flag_row.h"

#include <stdlib.h>
#include <string.h>

/* ---- as the reference reads them ---- */

static bool contains(const char *token, const char *needle, size_t n)
{
    for (; *token; token++)
        if (strncmp(token, needle, n) == 0) return true;
    return false;
}

static bool token_is(const br_flag_row *row, const char *token)
{
    const char *w = row->info.needles ? row->info.needles : row->info.names;
    while (*w) {
        const size_t len = strcspn(w, " ");
        if (*w == '=' ? strlen(token) == len - 1 && strncmp(token, w + 1, len - 1) == 0
                      : contains(token, w, len))
            return true;
        w += len;
        w += *w == ' ';
    }
    return false;
}

static fth_status no_value(const char *token, const br_flag_row *row, fth_err *err)
{
    FTH_FAIL(err, FTH_E_COMMAND, "%.80s has no value", token);
    fth_err_hint(err, "it is written %.*s %s%s%s", (int)strcspn(row->info.names, " "),
                 row->info.names, row->info.args, row->info.unit[0] ? ", in " : "", row->info.unit);
    return FTH_E_COMMAND;
}

/* Applies all flags that one token matches; `left` tokens follow it. */
static fth_status take_token(br_flags *f, const char *token, const char *const *next, int left,
                             fth_err *err)
{
    for (int id = 0; id < BR_FLAG_COUNT; id++) {
        const br_flag_row *row = &br_flag_rows[id];
        if (!token_is(row, token)) continue;
        int wanted = row->follow ? row->follow : row->values;
        if (!wanted && row->info.args[0]) wanted = 1;
        if (left < wanted && row->crash) return no_value(token, row, err);
        if (left < wanted) continue;
        if (br_flag_apply(f, (br_flag_id)id, next, left)) break;
    }
    return FTH_OK;
}

static fth_status parse_loose(br_flags *f, int n, char *const *word, fth_err *err)
{
    for (int i = 0; i < n; i++) {
        const char *const *next = (const char *const *)(word + i + 1);
        int took = 0;
        if (word[i][0] != '-') continue;
        FTH_TRY(br_foreign_take(f, word[i], next, n - i - 1, &took, err));
        if (!took) FTH_TRY(take_token(f, word[i], next, n - i - 1, err));
    }
    return FTH_OK;
}

/* ---- exactly ---- */

static fth_status unknown(const char *word, fth_err *err)
{
    char near[80] = "";
    if (word[0] == '-' && !br_is_number(word)) {
        br_flag_nearest(word, near, sizeof near);
        FTH_FAIL(err, FTH_E_COMMAND, "'%.200s' is not a flag of nanoBragg", word);
    } else {
        FTH_FAIL(err, FTH_E_COMMAND, "'%.200s' belongs to no flag", word);
    }
    if (near[0])
        fth_err_hint(err, "did you mean %s?", near);
    else
        fth_err_hint(err, "'fathom bragg --flags' lists them; --compat c reads them as nanoBragg "
                          "does");
    return FTH_E_COMMAND;
}

/* How many of the words that follow are values of the flag. */
static int values_of(const br_flag_row *row, char *const *next, int left)
{
    int n = 0;
    if (row->kind == BR_KIND_CELL) {
        while (n < left && n < 6 && br_is_number(next[n])) n++;
        return n;
    }
    int wanted = row->values;
    if (row->kind == BR_KIND_MISSET) wanted = left > 0 && strstr(next[0], "rand") ? 1 : 3;
    if (row->info.args[0] && wanted == 0) wanted = 1;
    while (n < left && n < wanted && br_flag_find(next[n]) < 0) n++; /* a flag is not a value */
    return n;
}

static fth_status parse_exact(br_flags *f, int n, char *const *word, fth_err *err)
{
    for (int i = 0; i < n;) {
        const int id = br_flag_find(word[i]);
        int took = 0;
        if (id < 0)
            FTH_TRY(br_foreign_take(f, word[i], (const char *const *)(word + i + 1), n - i - 1,
                                    &took, err));
        i += took;
        if (took) continue;
        if (id < 0) return unknown(word[i], err);
        const int values = values_of(&br_flag_rows[id], word + i + 1, n - i - 1);
        const char *const *value = (const char *const *)(word + i + 1);
        FTH_TRY_CTX(br_flag_check((br_flag_id)id, value, values, err), err, "word %d, %.60s", i + 1,
                    word[i]);
        (void)br_flag_apply(f, (br_flag_id)id, value, values);
        i += 1 + values;
    }
    return FTH_OK;
}

fth_status br_flags_parse(br_flags *f, int n, char *const *word, fth_err *err)
{
    const bool loose = f->quirks >> BR_QUIRK_SUBSTRING_FLAGS & 1;
    return loose ? parse_loose(f, n, word, err) : parse_exact(f, n, word, err);
}

/* ---- our own flags ---- */

const fth_flag br_direct_flags[] = {
    {.name = "compat",
     .value = FTH_FLAG_WORD,
     .doc = "spec, the default: the physics as intended; c: as nanoBragg computes it, defects "
            "included"},
    {.name = "quirk",
     .value = FTH_FLAG_SET,
     .many = true,
     .doc = "switch one defect of nanoBragg on or off: phi-carryover=on"},
    {.name = "precision",
     .value = FTH_FLAG_WORD,
     .doc = "f64, the default, or f32 with sums in f64: for previews"},
    {.name = "fdump",
     .value = FTH_FLAG_FILE,
     .doc = "read the structure factors from this dump file"},
    {.name = "checkpoint",
     .value = FTH_FLAG_COUNT,
     .doc =
         "save a checkpoint beside the float image after every N rows, and resume from it when the "
         "command is given again"},
    {.name = "smv32",
     .value = FTH_FLAG_FILE,
     .doc =
         "also write the photons as an SMV image with 32 bits: those of the noise image, or with "
         "-nonoise the image itself"},
    {.name = "cbf",
     .value = FTH_FLAG_FILE,
     .doc = "also write the photons as a CBF image, without -adc; -1 where nothing was rendered"},
    {.name = "preview",
     .value = FTH_FLAG_FILE,
     .doc = "also draw the image with rings of resolution: a .png, .svg or .pdf"},
    {.name = "preview-scale",
     .value = FTH_FLAG_WORD,
     .doc = "colours of the preview: log, the default, or linear"},
    {.name = "flags", .doc = "show all flags of nanoBragg in one table, and stop"},
    {0}};

static fth_status one_of(const char *flag, const char *text, const char *a, const char *b,
                         bool *first, fth_err *err)
{
    *first = strcmp(text, a) == 0;
    if (*first || strcmp(text, b) == 0) return FTH_OK;
    FTH_FAIL(err, FTH_E_COMMAND, "--%s takes %s or %s, not '%.200s'", flag, a, b, text);
    fth_err_hint(err, "write --%s=%s", flag, a);
    return FTH_E_COMMAND;
}

fth_status br_flags_quirk(br_flags *f, const char *setting, fth_err *err)
{
    char list[1024] = "";
    const size_t n = strcspn(setting, "=");
    const bool on = strcmp(setting + n, "=on") == 0, off = strcmp(setting + n, "=off") == 0;
    for (int q = 0; q < BR_QUIRKS; q++) {
        if (strlen(br_quirks[q].name) == n && strncmp(br_quirks[q].name, setting, n) == 0 &&
            (on || off)) {
            f->quirks = on ? f->quirks | 1u << q : f->quirks & ~(1u << q);
            return FTH_OK;
        }
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", q ? " " : "", br_quirks[q].name);
    }
    FTH_FAIL(err, FTH_E_COMMAND, "'%.200s' is not one of the quirks with =on or =off", setting);
    fth_err_hint(err, "they are: %s", list);
    return FTH_E_COMMAND;
}

fth_status br_flags_of_call(br_flags *f, const fth_direct_call *call, fth_err *err)
{
    bool first = true;
    const char *text;
    if ((text = call->value(call->user, "compat")))
        FTH_TRY(one_of("compat", text, "spec", "c", &first, err));
    br_flags_default(f, first);
    FTH_TRY(fth_ranks_agree(fth_context_ranks(call->context), &f->clock, err)); /* one seed */
    for (int i = 0; (text = call->value_at(call->user, "quirk", i)); i++)
        FTH_TRY(br_flags_quirk(f, text, err));
    if ((text = call->value(call->user, "precision"))) {
        FTH_TRY(one_of("precision", text, "f64", "f32", &first, err));
        f->precision = first ? BR_F64 : BR_F32;
    }
    if ((text = call->value(call->user, "seed"))) f->seed_all = strtol(text, NULL, 10);
    f->fdump = call->value(call->user, "fdump");
    FTH_TRY(br_flags_parse(f, call->n_words, call->word, err));
    br_foreign_answer(f, call->notes);
    return FTH_OK;
}
