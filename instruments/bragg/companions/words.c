/* words.c - reading flags by a table. */
#include "words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static fth_status not_a(const char *what, const char *flag, const char *text, fth_err *err)
{
    FTH_FAIL(err, FTH_E_COMMAND, "%s takes %s, not '%.100s'", flag, what, text);
    fth_err_hint(err, "write it as in '%s 1'", flag);
    return FTH_E_COMMAND;
}

/* atof and atoi where reading is lenient: what is not a number is 0. */
static fth_status read_number(const char *flag, const char *text, bool whole, bool lenient,
                              double *out, fth_err *err)
{
    char *stop = NULL;
    const char *end = NULL;
    if (whole)
        *out = (double)strtol(text, &stop, 10), end = stop;
    else
        *out = fth_strtod(text, &end);
    const bool good = end != text && !*end && isfinite(*out);
    return good || lenient ? FTH_OK : not_a(whole ? "a whole number" : "a number", flag, text, err);
}

static fth_status put(const br_word *row, char *into, const char *text, bool lenient, fth_err *err)
{
    double number = 0;
    const double scale = row->scale != 0 ? row->scale : 1;
    if (row->kind == BR_WORD_TEXT) {
        const size_t room = (size_t)row->scale;
        if (strlen(text) >= room)
            return FTH_FAIL(err, FTH_E_COMMAND, "%s takes at most %zu characters", row->name,
                            room - 1);
        memcpy(into + row->at, text, strlen(text) + 1);
    } else if (row->kind == BR_WORD_LIST) {
        br_word_list *list = (br_word_list *)(void *)(into + row->at);
        FTH_TRY(read_number(row->name, text, false, lenient, &number, err));
        if (list->n == BR_WORD_LIST_MOST)
            return FTH_FAIL(err, FTH_E_COMMAND, "%s is given more than %d times", row->name,
                            BR_WORD_LIST_MOST);
        list->v[list->n++] = number * scale;
    } else if (row->kind == BR_WORD_REAL) {
        FTH_TRY(read_number(row->name, text, false, lenient, &number, err));
        number = row->per != 0 ? number / row->per : number * scale;
        memcpy(into + row->at, &number, sizeof number);
    } else {
        int64_t whole = (int64_t)row->scale;
        if (row->kind != BR_WORD_PUT) {
            FTH_TRY(read_number(row->name, text, true, lenient, &number, err));
            whole = row->kind == BR_WORD_NEGATED ? -(int64_t)number : (int64_t)number;
        }
        memcpy(into + row->at, &whole, sizeof whole);
    }
    if (row->also && !(row->meant && lenient))
        memcpy(into + row->also, &(int64_t){1}, sizeof(int64_t));
    return FTH_OK;
}

static bool hits(const br_word *row, const char *word, bool lenient)
{
    if (lenient && !row->exact) return strstr(word, row->name) != NULL;
    return (lenient || !row->lenient) && strcmp(word, row->name) == 0;
}

static fth_status unknown(const br_word *table, int rows, const char *word, fth_err *err)
{
    char list[2048] = "";
    size_t n = 0;
    for (int r = 0; r < rows; r++)
        if (!table[r].lenient && n + strlen(table[r].name) + 2 < sizeof list)
            n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", n ? " " : "", table[r].name);
    FTH_FAIL(err, FTH_E_COMMAND, "'%.100s' is not a flag of this command", word);
    int near = fth_word_nearest(list, word);
    const char *at = list;
    for (; near > 0; near--) at = strchr(at, ' ') + 1;
    if (near == 0)
        fth_err_hint(err, "did you mean %.*s?", (int)strcspn(at, " "), at);
    else
        fth_err_hint(err, "flags are: %.300s", list);
    return FTH_E_COMMAND;
}

/* Applies every row that word i matches; `took`: a value followed. */
static fth_status take(const br_word *table, int rows, void *into, bool lenient, int n,
                       char *const *word, int i, bool *hit, bool *took, fth_err *err)
{
    for (int r = 0; r < rows; r++) {
        const bool wants = table[r].kind != BR_WORD_PUT;
        if (!hits(&table[r], word[i], lenient)) continue;
        *hit = true;
        if (wants && i + 1 >= n) {
            if (lenient) continue;
            FTH_FAIL(err, FTH_E_COMMAND, "%s has no value", word[i]);
            fth_err_hint(err, "write the value after it");
            return FTH_E_COMMAND;
        }
        FTH_TRY(put(&table[r], into, wants ? word[i + 1] : "", lenient, err));
        *took = *took || wants;
    }
    return FTH_OK;
}

fth_status br_words_read(const br_word *table, int rows, void *into, bool lenient, int n,
                         char *const *word, bool *used, fth_err *err)
{
    for (int i = 0; i < n; i++) {
        bool hit = false, took = false;
        if (word[i][0] == '-')
            FTH_TRY(take(table, rows, into, lenient, n, word, i, &hit, &took, err));
        if (!hit && !lenient && !used) return unknown(table, rows, word[i], err);
        if (used && hit) used[i] = true;
        if (used && took) used[i + 1] = true;
        if (took && !lenient) i++;
    }
    return FTH_OK;
}
