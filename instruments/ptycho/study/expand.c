/* expand.c - lists of doses, losses and algorithms in a config: a job for each combination.
 *
 * `doses: [1e9, 1e4]` with `losses: [nll, mae]` is four jobs, high_nll to low_mae. Losses are
 * learned and algorithms solved: both lists together are one list of ways, each at every dose.
 */
#include "study.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const lists[] = {"doses", "losses", "algorithms"};
enum { DOSES, LOSSES, ALGORITHMS, LISTS };

bool pt_is_general(const fth_config *cfg)
{
    for (int k = 0; k < LISTS; k++)
        if (fth_config_peek_count(cfg, lists[k]) >= 1) return true;
    return false;
}

void pt_dose_name(const double *dose, int n, int i, char *name, size_t bytes)
{
    if (n == 1)
        snprintf(name, bytes, "dose");
    else if (n == 2)
        snprintf(name, bytes, "%s", dose[i] >= dose[1 - i] ? "high" : "low");
    else
        snprintf(name, bytes, "d%.3g", dose[i]);
    for (char *c = name; *c; c++)
        if (*c == '+') memmove(c, c + 1, strlen(c));
}

/* Room in the text of a variant. */
typedef struct room {
    char *at;
    size_t left;
} room;

static const char *take(room *r, const char *key, const char *value)
{
    char *text = r->at;
    const int n = snprintf(r->at, r->left, "%s%s", key, value);
    const size_t used = n < 0 ? 0 : (size_t)n < r->left ? (size_t)n + 1 : r->left;
    r->at += used == r->left ? used - 1 : used;
    r->left -= used == r->left ? used - 1 : used;
    return text;
}

static void add_name(char *name, size_t bytes, const char *part)
{
    const size_t used = strlen(name);
    snprintf(name + used, bytes - used, "%s%s", used ? "_" : "", part);
}

static double number(const char *text)
{
    double v = 0;
    return text && fth_real_parse(text, &v) ? v : (double)NAN;
}

static int64_t count(const fth_config *cfg, int list)
{
    const int64_t n = fth_config_peek_count(cfg, lists[list]);
    return n > 0 ? n : 0;
}

static const char *word(const fth_config *cfg, int list, int64_t i)
{
    const char *text = fth_config_peek_at(cfg, lists[list], i);
    return text ? text : "~";
}

static void name_dose(const fth_config *cfg, int64_t at, char *name, size_t bytes)
{
    double dose[PT_MOST_DOSES];
    const int64_t all = count(cfg, DOSES);
    const int n = (int)(all < PT_MOST_DOSES ? all : PT_MOST_DOSES);
    for (int k = 0; k < n; k++) dose[k] = number(word(cfg, DOSES, k));
    if (at < n)
        pt_dose_name(dose, n, (int)at, name, bytes);
    else
        snprintf(name, bytes, "d%.16s", word(cfg, DOSES, at));
}

bool pt_expand(const fth_config *cfg, int64_t i, fth_variant_made *out)
{
    const int64_t doses = count(cfg, DOSES), losses = count(cfg, LOSSES),
                  ways = losses + count(cfg, ALGORITHMS);
    const int64_t way = ways ? i % ways : 0, dose = ways ? i / ways : i;
    if (doses + ways == 0 || dose >= (doses ? doses : 1)) return false;
    memset(out, 0, sizeof *out);
    room r = {out->text, sizeof out->text};
    char name[80] = "";
    int n = 0;
    if (doses) {
        name_dose(cfg, dose, name, sizeof name);
        out->variant.set[n++] = take(&r, "nphotons=", word(cfg, DOSES, dose));
    }
    if (ways && way < losses) {
        const bool mae = strcmp(word(cfg, LOSSES, way), "mae") == 0;
        add_name(name, sizeof name, word(cfg, LOSSES, way));
        out->variant.set[n++] = take(&r, "nll_weight=", mae ? "0" : "1");
        out->variant.set[n++] = take(&r, "mae_weight=", mae ? "1" : "0");
        out->variant.set[n++] = take(&r, "method=", "learn");
    } else if (ways) {
        add_name(name, sizeof name, word(cfg, ALGORITHMS, way - losses));
        out->variant.set[n++] = take(&r, "algorithm=", word(cfg, ALGORITHMS, way - losses));
        out->variant.set[n++] = take(&r, "method=", "solve");
    }
    for (int k = 0; k < LISTS; k++) /* a job has one of each, so its config has no list */
        if (count(cfg, k)) out->variant.set[n++] = take(&r, lists[k], "=~");
    out->variant.name = take(&r, name, "");
    out->variant.set[n] = take(&r, "model=", name);
    return true;
}
