/* foreign.c - flags of programs that followed nanoBragg: nanobrag_torch and nanoBraggCUDA.
 *
 * Their users give them here too. nanoBragg itself would ignore them, or find another flag inside
 * (-pixel in -pixel_batch_size), so they are matched first, by their whole names, in both modes of
 * reading. They act where they can; otherwise a notice says that they have no effect.
 */
#include "flag_row.h"

#include <string.h>

typedef enum foreign_kind { DEVICE, PRECISION, TRACE, NOTHING } foreign_kind;

static const struct foreign {
    const char *names; /* between blanks */
    foreign_kind kind;
    int values;
    const char *args; /* what follows, for errors */
    const char *answer;
} table[] = {
    {"-device", DEVICE, 1, "cpu|cuda", NULL}, /* fth_direct.device_word acted on it */
    {"-dtype", PRECISION, 1, "float32|float64", NULL},
    {"-precision", PRECISION, 1, "single|double", NULL},
    {"-trace_pixel", TRACE, 2, "slow fast", NULL},
    {"-pixel_batch_size --pixel-batch-size", NOTHING, 1, "rows",
     "has no effect: rows are planned to fit --memory"},
    {"-show_config -echo_config", NOTHING, 0, "",
     "has no effect: the settings are printed; --json writes them for programs"},
};

/* By its whole name, or by the part before a '='. */
static const struct foreign *find(const char *word)
{
    const size_t n = strcspn(word, "=");
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        for (const char *w = table[i].names; *w; w += strspn(w, " ")) {
            const size_t len = strcspn(w, " ");
            if (len == n && strncmp(w, word, n) == 0) return &table[i];
            w += len;
        }
    return NULL;
}

static fth_status refuse(const struct foreign *row, const char *found, fth_err *err)
{
    FTH_FAIL(err, FTH_E_COMMAND, "%.*s takes %s, not %s%.80s%s", (int)strcspn(row->names, " "),
             row->names, row->values ? row->args : "no value", found ? "'" : "nothing",
             found ? found : "", found ? "'" : "");
    fth_err_hint(err, "it is written %.*s %s", (int)strcspn(row->names, " "), row->names,
                 row->args);
    return FTH_E_COMMAND;
}

static bool is_one_of(const char *word, const char *a, const char *b, const char *c)
{
    return strcmp(word, a) == 0 || strcmp(word, b) == 0 || strcmp(word, c) == 0;
}

static fth_status set_precision(br_flags *f, const struct foreign *row, const char *value,
                                fth_err *err)
{
    if (is_one_of(value, "float32", "single", "f32"))
        f->precision = BR_F32;
    else if (is_one_of(value, "float64", "double", "f64"))
        f->precision = BR_F64;
    else
        return refuse(row, value, err);
    return FTH_OK;
}

/* The same pixel for -printout_pixel, which has the fast axis first. */
static fth_status set_trace(br_flags *f, const struct foreign *row, const char *const *value,
                            fth_err *err)
{
    const char *const turned[2] = {value[1], value[0]};
    char typed[80];
    snprintf(typed, sizeof typed, "%.38s %.38s", value[0], value[1]);
    /* Its own error would name the other flag, with the axes swapped. */
    if (br_flag_check(BR_FLAG_PRINTOUT_PIXEL, turned, 2, NULL) != FTH_OK)
        return refuse(row, typed, err);
    (void)br_flag_apply(f, BR_FLAG_PRINTOUT_PIXEL, turned, 2);
    (void)br_flag_apply(f, BR_FLAG_PRINTOUT, NULL, 0);
    return FTH_OK;
}

fth_status br_foreign_take(br_flags *f, const char *word, const char *const *next, int left,
                           int *took, fth_err *err)
{
    const struct foreign *row = find(word);
    *took = 0;
    if (!row) return FTH_OK;
    const char *equal = strchr(word, '=');
    const char *const joined[1] = {equal ? equal + 1 : NULL};
    if (equal && row->values != 1) return refuse(row, equal + 1, err);
    if (!equal && left < row->values) return refuse(row, left ? next[0] : NULL, err);
    const char *const *value = equal ? joined : next;
    for (int i = 0; i < row->values; i++)
        if (br_flag_find(value[i]) >= 0) return refuse(row, value[i], err); /* a flag, no value */
    *took = 1 + (equal ? 0 : row->values);
    if (row->kind == PRECISION) return set_precision(f, row, value[0], err);
    if (row->kind == TRACE) return set_trace(f, row, value, err);
    if (row->answer && f->n_answers < BR_ANSWERS)
        f->answer[f->n_answers++] = (br_answer){word, row->answer};
    return FTH_OK;
}

void br_foreign_answer(const br_flags *f, FILE *notes)
{
    for (int i = 0; notes && i < f->n_answers; i++)
        fprintf(notes, "NOTICE: %.80s %s\n", f->answer[i].word, f->answer[i].text);
}
