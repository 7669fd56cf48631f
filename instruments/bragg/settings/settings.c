/* settings.c - the flags of a checked config.
 *
 * Keys become flags, by the names that flags.def gives them, and flags become the experiment: there
 * is one resolver for the command line and for jobs.
 */
#include "settings.h"
#include "../flags/flag_row.h"

#include <inttypes.h>
#include <string.h>

/* ---- keys that stand for several flags: one for all elements, or one for each ---- */

static const struct spread {
    const char *key, *all, *each[3];
} spreads[] = {
    {"crystal.N", "-N", {"-Na", "-Nb", "-Nc"}},
    {"crystal.size", "-xtalsize", {"-xtal_thick", "-xtal_width", "-xtal_height"}},
    {"detector.pixels", "-detpixels", {"-detpixels_f", "-detpixels_s"}},
    {"detector.size", "-detsize", {"-detsize_f", "-detsize_s"}},
    {"detector.beam", NULL, {"-Xbeam", "-Ybeam"}},
    {"detector.close", NULL, {"-Xclose", "-Yclose"}},
    {"detector.org", NULL, {"-ORGX", "-ORGY"}},
    {"detector.rot", NULL, {"-detector_rotx", "-detector_roty", "-detector_rotz"}},
};

static const struct spread *find_spread(const char *key)
{
    for (size_t i = 0; i < sizeof spreads / sizeof spreads[0]; i++)
        if (strcmp(spreads[i].key, key) == 0) return &spreads[i];
    return NULL;
}

/* The first flag whose key is `key`, or "key=value"; its name has no blanks. */
static bool find_flag(const char *key, const char *value, char name[40])
{
    char want[80];
    snprintf(want, sizeof want, "%s%s%s", key, value ? "=" : "", value ? value : "");
    for (int i = 0; i < BR_FLAG_COUNT; i++) {
        const br_flag_info *info = br_flag_get_info((br_flag_id)i);
        if (strcmp(info->key, want) != 0) continue;
        snprintf(name, 40, "%.*s", (int)strcspn(info->names, " "), info->names);
        return true;
    }
    return false;
}

enum { MOST = 6, DIGITS = 40 };
typedef struct written {
    char text[MOST][DIGITS];
    const char *value[MOST];
    int n;
} written;

static void write_values(const fth_config *cfg, const fth_config_key *key, written *w)
{
    const int64_t n = fth_config_count(cfg, key->name);
    w->n = n < MOST ? (int)n : MOST;
    for (int i = 0; i < w->n; i++) {
        w->value[i] = w->text[i];
        if (key->type == FTH_CONFIG_REAL)
            fth_number_format(w->text[i], DIGITS, fth_config_real_at(cfg, key->name, i), 17);
        else if (key->type == FTH_CONFIG_INT)
            snprintf(w->text[i], DIGITS, "%" PRId64, fth_config_int_at(cfg, key->name, i));
        else if (key->type == FTH_CONFIG_BOOL)
            w->value[i] = fth_config_bool(cfg, key->name) ? "true" : "false";
        else
            w->value[i] = fth_config_text_at(cfg, key->name, i);
    }
}

static int elements_of(const struct spread *s)
{
    int n = 0;
    while (n < 3 && s->each[n]) n++;
    return n;
}

fth_status br_flags_set_each(br_flags *f, const char *flag, const char *const *value, int n,
                             fth_err *err)
{
    char name[80];
    snprintf(name, sizeof name, "%s%s", flag[0] == '-' ? "" : "-", flag);
    const int id = br_flag_find(name);
    for (size_t i = 0; id >= 0 && n > 1 && i < sizeof spreads / sizeof spreads[0]; i++) {
        const struct spread *s = &spreads[i];
        if (!s->all || br_flag_find(s->all) != id) continue;
        if (n != elements_of(s)) {
            FTH_FAIL(err, FTH_E_COMMAND, "%s takes 1 value or %d, not %d", name, elements_of(s), n);
            fth_err_hint(err, "one for all, or one for each of %s, %s%s%s", s->each[0], s->each[1],
                         s->each[2] ? ", " : "", s->each[2] ? s->each[2] : "");
            return FTH_E_COMMAND;
        }
        for (int k = 0; k < n; k++) FTH_TRY(br_flags_set(f, s->each[k], &value[k], 1, err));
        return FTH_OK;
    }
    return br_flags_set(f, flag, value, n, err);
}

static fth_status set_spread(br_flags *f, const struct spread *s, const written *w, fth_err *err)
{
    if (s->all && w->n == 1) return br_flags_set(f, s->all, w->value, 1, err);
    for (int i = 0; i < w->n; i++) FTH_TRY(br_flags_set(f, s->each[i], &w->value[i], 1, err));
    return FTH_OK;
}

static fth_status set_flag(br_flags *f, const fth_config *cfg, const fth_config_key *key,
                           fth_err *err)
{
    const struct spread *s = find_spread(key->name);
    char name[40];
    written w;
    write_values(cfg, key, &w);
    if (s) return set_spread(f, s, &w, err);
    const bool word = key->type == FTH_CONFIG_BOOL || key->type == FTH_CONFIG_CHOICE;
    if (word && find_flag(key->name, w.value[0], name)) return br_flags_set(f, name, NULL, 0, err);
    if (key->type != FTH_CONFIG_BOOL && find_flag(key->name, NULL, name))
        return br_flags_set(f, name, w.value, w.n, err);
    return FTH_OK; /* a key of jobs alone, or a switch that stays off */
}

/* ---- keys without a flag of nanoBragg ---- */

static fth_status set_quirks(br_flags *f, const fth_config *cfg, fth_err *err)
{
    f->quirks &= ~(1u << BR_QUIRK_AUTO_FDUMP); /* jobs read only named files */
    for (int q = 0; q < BR_QUIRKS; q++) {
        char key[60], setting[60];
        snprintf(key, sizeof key, "quirks.%s", br_quirks[q].name);
        if (!br_given(cfg, key)) continue;
        snprintf(setting, sizeof setting, "%s=%s", br_quirks[q].name,
                 fth_config_bool(cfg, key) ? "on" : "off");
        FTH_TRY(br_flags_quirk(f, setting, err));
    }
    return FTH_OK;
}

/* Never from the clock: a job must be reproducible. */
static void set_seeds(br_flags *f, const fth_config *cfg)
{
    f->clock = fth_config_int(cfg, "seed");
    if (br_given(cfg, "seed")) f->seed_all = fth_config_int(cfg, "seed");
}

/* The order of flags matters: vectors change a convention that was named before, and the last pivot
 * wins. Keys have no order, so this list defines one. */
enum { TURNS = 3 };
static int turn_of(const char *key)
{
    return strcmp(key, "detector.convention") == 0 ? 0 : strcmp(key, "detector.pivot") == 0 ? 2 : 1;
}

fth_status br_job_flags(br_flags *f, const fth_config *cfg, fth_err *err)
{
    br_flags_default(f, strcmp(fth_config_text(cfg, "compat"), "spec") == 0);
    FTH_TRY(set_quirks(f, cfg, err));
    set_seeds(f, cfg);
    f->precision = strcmp(fth_config_text(cfg, "sampling.precision"), "f32") == 0 ? BR_F32 : BR_F64;
    if (br_given(cfg, "crystal.fdump")) f->fdump = fth_config_text(cfg, "crystal.fdump");
    for (int turn = 0; turn < TURNS; turn++)
        for (int64_t i = 0; i < br_schema.n_keys; i++) {
            const fth_config_key *key = &br_schema.key[i];
            if (key->type == FTH_CONFIG_SECTION || turn_of(key->name) != turn ||
                !br_given(cfg, key->name))
                continue;
            const fth_place at = fth_config_where(cfg, key->name);
            FTH_TRY_CTX(set_flag(f, cfg, key, err), err, "%s:%d:%d: %s", at.file, at.line,
                        at.column, key->name);
        }
    if (br_given(cfg, "crystal.random") && fth_config_bool(cfg, "crystal.random"))
        FTH_TRY(br_flags_set(f, "-misset", &(const char *){"random"}, 1, err));
    return FTH_OK;
}
