/* rules.c - keys of the strategies for verbs that have no config: --set key=value. */
#include "densify.h"

#include <fathom/number.h>

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef enum kind { REAL, COUNT, SWITCH, SWITCH_OFF } kind; /* the last sets its opposite */

static const struct key {
    const char *name;
    kind kind;
    size_t at;
    double least, most;
} keys[] = {
#define ADC(field) offsetof(gs_refine_rules, adc.field)
#define MCMC(field) offsetof(gs_refine_rules, mcmc.field)
    {"grad_threshold", REAL, ADC(grad_threshold), 0, 1e6},
    {"grow_scale3d", REAL, ADC(grow_scale3d), 0, 1e6},
    {"prune_opacity", REAL, ADC(prune_opacity), 0, 0.5},
    {"prune_scale3d", REAL, ADC(prune_scale3d), 0, 1e6},
    {"reset_every", COUNT, ADC(reset_every), 1, 1e9},
    {"revised_opacity", SWITCH, ADC(revised_opacity), 0, 0},
    {"min_opacity", REAL, MCMC(min_opacity), 0, 1},
    {"max_cap", COUNT, ADC(max_cap), 1, 1e12},
    {"relocate_zero_dead", SWITCH_OFF, MCMC(keep_dead_moments), 0, 0},
#undef ADC
#undef MCMC
};
enum { KEYS = sizeof keys / sizeof keys[0] };

static bool set_switch(const struct key *k, const char *text, bool *to)
{
    const bool yes = strcmp(text, "true") == 0;
    if (!yes && strcmp(text, "false") != 0) return false;
    *to = yes == (k->kind == SWITCH);
    return true;
}

static fth_status set_key(gs_refine_rules *rules, const struct key *k, const char *text,
                          fth_err *err)
{
    char *to = (char *)rules + k->at;
    int64_t count;
    double real;
    if (k->kind == REAL && fth_real_parse(text, &real) && real >= k->least && real <= k->most) {
        memcpy(to, &real, sizeof real);
        return FTH_OK;
    }
    if (k->kind == COUNT && fth_int_parse(text, &count) && (double)count >= k->least &&
        (double)count <= k->most) {
        memcpy(to, &count, sizeof count);
        return FTH_OK;
    }
    if (k->kind >= SWITCH) {
        if (set_switch(k, text, (bool *)to)) return FTH_OK;
        return FTH_FAIL(err, FTH_E_COMMAND, "--set %s: expected true or false, found '%s'", k->name,
                        text);
    }
    return FTH_FAIL(err, FTH_E_COMMAND, "--set %s: expected %g to %g, found '%s'", k->name,
                    k->least, k->most, text);
}

static fth_status refuse(const char *text, fth_err *err)
{
    char names[512] = "";
    for (int i = 0; i < KEYS; i++) {
        const size_t n = strlen(names);
        snprintf(names + n, sizeof names - n, "%s%s", i ? ", " : "", keys[i].name);
    }
    FTH_FAIL(err, FTH_E_COMMAND, "--set: expected a key of the strategies and a value, found '%s'",
             text);
    fth_err_hint(err, "keys: %s", names);
    return FTH_E_COMMAND;
}

fth_status gs_refine_rules_read(gs_refine_rules *rules,
                                const char *(*value)(void *user, const char *flag), void *user,
                                fth_err *err)
{
    *rules = (gs_refine_rules){gs_adc_default(), gs_mcmc_default()};
    rules->adc.max_cap = 1000000;
    for (int i = 0;; i++) {
        char flag[24];
        snprintf(flag, sizeof flag, "set#%d", i);
        const char *text = value(user, flag), *equals = text ? strchr(text, '=') : NULL;
        if (!text) break;
        const struct key *found = NULL;
        for (int k = 0; equals && k < KEYS; k++)
            if (strlen(keys[k].name) == (size_t)(equals - text) &&
                strncmp(keys[k].name, text, (size_t)(equals - text)) == 0)
                found = &keys[k];
        if (!found) return refuse(text, err);
        FTH_TRY(set_key(rules, found, equals + 1, err));
    }
    rules->mcmc.max_cap = rules->adc.max_cap;
    return FTH_OK;
}
