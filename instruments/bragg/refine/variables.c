/* variables.c - which parameters are free, and which move together. */
#include "refine.h"

#include <string.h>

/* The parameter with this name; -1: none. */
static int find(const char *name, size_t n)
{
    for (int p = 0; p < BR_PARAMS; p++)
        if (strlen(br_params[p].name) == n && strncmp(br_params[p].name, name, n) == 0) return p;
    return -1;
}

static fth_status unknown(const char *flag, const char *name, size_t n, fth_err *err)
{
    char list[256] = "";
    for (int p = 0; p < BR_PARAMS; p++) {
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", used ? " " : "", br_params[p].name);
    }
    FTH_FAIL(err, FTH_E_COMMAND, "--%s: '%.*s' is not a parameter", flag, (int)(n < 64 ? n : 64),
             name);
    fth_err_hint(err, "they are %s", list);
    return FTH_E_COMMAND;
}

/* Calls `each` for the names of one list, with the character that stood before each. */
static fth_status each_name(const char *flag, const char *list,
                            void (*each)(int *state, char before, int p), int *state, fth_err *err)
{
    char before = ',';
    for (const char *at = list;; before = *at, at++) {
        const size_t n = strcspn(at, ",=");
        const int p = find(at, n);
        if (p < 0 || (before == '=' && strcmp(flag, "tie") != 0)) return unknown(flag, at, n, err);
        each(state, before, p);
        at += n;
        if (!*at) return FTH_OK;
    }
}

/* state[p] is the group of p; fixed ones have none. state[BR_PARAMS] is the parameter before. */
static void add_free(int *group, char before, int p)
{
    (void)before;
    group[p] = p;
}
static void add_fixed(int *group, char before, int p)
{
    (void)before;
    group[p] = -1;
}

/* tied[p] is the first of the group that p belongs to. */
static void add_tied(int *tied, char before, int p)
{
    if (before == '=') {
        const int from = tied[p], to = tied[tied[BR_PARAMS]];
        for (int q = 0; q < BR_PARAMS; q++)
            if (tied[q] == from) tied[q] = to;
    }
    tied[BR_PARAMS] = p;
}

static bool same_kind(int p, int q)
{
    return strcmp(br_params[p].unit, br_params[q].unit) == 0;
}

fth_status br_variables_parse(br_variables *out, const char *free, const char *fix, const char *tie,
                              fth_err *err)
{
    int group[BR_PARAMS + 1], tied[BR_PARAMS + 1], number[BR_PARAMS];
    bool held[BR_PARAMS] = {false};
    *out = (br_variables){.n = 0};
    for (int p = 0; p < BR_PARAMS; p++) group[p] = number[p] = -1, tied[p] = p;
    FTH_TRY(each_name("free", free ? free : BR_REFINE_FREE, add_free, group, err));
    if (fix) FTH_TRY(each_name("fix", fix, add_fixed, group, err));
    if (tie) FTH_TRY(each_name("tie", tie, add_tied, tied, err));
    for (int p = 0; p < BR_PARAMS; p++) {
        if (!same_kind(p, tied[p]))
            return FTH_FAIL(err, FTH_E_COMMAND, "--tie: %s is in %s and %s in %s",
                            br_params[p].name, br_params[p].unit, br_params[tied[p]].name,
                            br_params[tied[p]].unit);
        held[tied[p]] |= group[p] >= 0;
    }
    for (int p = 0; p < BR_PARAMS; p++) {
        const int t = tied[p];
        if (held[t] && number[t] < 0) {
            out->head[out->n] = (br_param)p;
            number[t] = out->n++;
        }
        out->of[p] = number[t];
    }
    if (out->n) return FTH_OK;
    FTH_FAIL(err, FTH_E_COMMAND, "no parameter is free: there is nothing to refine");
    fth_err_hint(err, "name parameters with --free; the default is %s", BR_REFINE_FREE);
    return FTH_E_COMMAND;
}
