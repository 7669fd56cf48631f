/* settings.c - from flags to a checked config, and from that to what is selected. */
#include "settings.h"

#include <string.h>

/* ---- flags ---- */

/* Which experiment: flags of `run` and `plan`, and of nothing else. */
static const fo_option places[] = {{"data-root", "input.data_root", false, true, false},
                                   {"exp", "input.exp", false, true, false},
                                   {"microscope", "input.microscope", false, true, false},
                                   {0}};

const char *fo_flag_of(const char *key)
{
    for (const fo_option *o = places; o->flag; o++)
        if (strcmp(o->key, key) == 0) return o->flag;
    for (const fo_option *o = fo_options; o->flag; o++)
        if (strcmp(o->key, key) == 0) return o->flag;
    return NULL;
}

static fth_status set_one(fth_config *cfg, const fo_option *o, const char *value, fth_err *err)
{
    return fth_config_set_flag(cfg, &fo_schema, o->flag, o->key, value, err);
}

fth_status fo_settings_from_flags(fth_config **out, fth_mem *mem, bool stack,
                                  fth_flag_value_fn *value, void *user, fth_err *err)
{
    fth_config *cfg = NULL;
    *out = NULL;
    FTH_TRY(fth_config_create(&cfg, mem, err));
    fth_status s = fth_config_set(cfg, "name=focus", err);
    for (const fo_option *o = places; s == FTH_OK && !stack && o->flag; o++) {
        const char *text = value(user, o->flag);
        if (text) s = set_one(cfg, o, text, err);
        if (!text && s == FTH_OK) {
            s = FTH_FAIL(err, FTH_E_COMMAND, "--%s is missing", o->flag);
            fth_err_hint(err, "write 'fathom focus run --data-root D --exp E --microscope YX1'");
        }
    }
    for (const fo_option *o = fo_options; s == FTH_OK && o->flag; o++) {
        const char *text = (stack ? o->stack : o->plate) ? value(user, o->flag) : NULL;
        if (text) s = set_one(cfg, o, text, err);
    }
    if (s == FTH_OK) s = fth_config_check_flags(cfg, &fo_schema, "options", fo_flag_of, err);
    if (s == FTH_OK)
        *out = cfg;
    else
        fth_config_destroy(cfg, NULL);
    return s;
}

/* ---- selection ---- */

static bool parse_part(const char **at, int64_t otherwise, int64_t *out)
{
    char digits[24];
    const size_t n = strspn(*at, "0123456789");
    if (n >= sizeof digits) return false;
    memcpy(digits, *at, n);
    digits[n] = '\0';
    *out = otherwise;
    *at += n;
    return n == 0 || fth_int_parse(digits, out);
}

bool fo_range_parse(const char *text, fo_range *out)
{
    *out = (fo_range){0, -1, 1};
    if (!parse_part(&text, 0, &out->first) || *text++ != ':') return false;
    if (!parse_part(&text, -1, &out->end)) return false;
    if (*text == ':') {
        text++;
        if (!parse_part(&text, 1, &out->step)) return false;
    }
    return *text == '\0' && out->step >= 1 && (out->end < 0 || out->end > out->first);
}

int64_t fo_range_count(const fo_range *r, int64_t size)
{
    const int64_t end = r->end < 0 ? size : r->end;
    return end <= r->first ? 0 : (end - r->first - 1) / r->step + 1;
}

/* The next of the fields between commas; false: there is none. */
static bool next_field(const char **at, char *field, size_t bytes)
{
    if (!*at) return false;
    const size_t n = strcspn(*at, ",");
    if (n >= bytes) return false;
    memcpy(field, *at, n);
    field[n] = '\0';
    *at = (*at)[n] ? *at + n + 1 : NULL;
    return true;
}

/* "17,2189,1152,u16[,4096]" */
static bool parse_raw(const char *text, fth_raw_layout *out)
{
    static const struct {
        const char *name;
        fth_dtype dtype;
    } dtypes[] = {{"u8", FTH_U8},    {"u16", FTH_U16},    {"f32", FTH_F32},
                  {"uint8", FTH_U8}, {"uint16", FTH_U16}, {"float32", FTH_F32}};
    char field[40];
    int64_t offset = 0;
    *out = (fth_raw_layout){.n_axes = 3};
    for (int i = 0; i < 3; i++)
        if (!next_field(&text, field, sizeof field) || !fth_int_parse(field, &out->size[i]) ||
            out->size[i] < 1 || out->size[i] > INT32_MAX)
            return false;
    if (!next_field(&text, field, sizeof field)) return false;
    size_t i = 0;
    while (i < sizeof dtypes / sizeof dtypes[0] && strcmp(field, dtypes[i].name) != 0) i++;
    if (i == sizeof dtypes / sizeof dtypes[0]) return false;
    out->dtype = dtypes[i].dtype;
    if (text && (!next_field(&text, field, sizeof field) || !fth_int_parse(field, &offset)))
        return false;
    out->offset = (uint64_t)offset;
    return text == NULL && offset >= 0;
}

static double real_of(const fth_config *cfg, const char *key)
{
    return fth_config_has(cfg, key) ? fth_config_real(cfg, key) : 0;
}

static fth_status wrong(fth_err *err, const char *option, const char *expected, const char *found)
{
    return FTH_FAIL(err, FTH_E_COMMAND, "--%s: expected %s, found '%.100s'", option, expected,
                    found);
}

fth_status fo_workers_read(const fth_config *cfg, fo_workers *out, fth_err *err)
{
    enum { MOST = 1024 };
    const char *text = fth_config_text_or(cfg, "focus.workers", ""), *at = text;
    char field[16];
    int64_t n[2] = {0, 0};
    int k = 0;
    *out = (fo_workers){0};
    if (!*text) return FTH_OK;
    bool good = true;
    while (good && k < 2 && at) {
        good = next_field(&at, field, sizeof field) && fth_int_parse(field, &n[k]) && n[k] >= 1 &&
               n[k] <= MOST;
        k += good;
    }
    if (!good || at) return wrong(err, "workers", "R,E with numbers from 1 to 1024", text);
    *out = (fo_workers){(int)n[0], (int)n[k - 1]};
    return FTH_OK;
}

fth_status fo_selection_read(const fth_config *cfg, fo_selection *out, fth_err *err)
{
    *out = (fo_selection){
        .channel = fth_config_text_or(cfg, "focus.channel", ""),
        .channels = (fo_channels)fth_config_choice(cfg, "focus.channels"),
        .wells = fth_config_text_or(cfg, "focus.wells", ""),
        .times = {0, -1, 1},
        .planes = {0, -1, 1},
        .z_keep = fth_config_has(cfg, "focus.z_keep") ? fth_config_int(cfg, "focus.z_keep") : 0,
        .has_planes = fth_config_has(cfg, "focus.z_range"),
        .z_step_um = real_of(cfg, "focus.z_step"),
        .um_per_px = real_of(cfg, "focus.um_per_px"),
        .is_raw = fth_config_has(cfg, "focus.raw"),
        .images = {.search_bytes = (uint64_t)fth_config_int(cfg, "focus.nd2_search"),
                   .rgb_is_bgr = fth_config_choice(cfg, "focus.rgb_order") == 1,
                   .read_mode = (fth_read_mode)fth_config_choice(cfg, "focus.read_mode")}};
    const char *times = fth_config_text_or(cfg, "focus.times", ""),
               *planes = fth_config_text_or(cfg, "focus.z_range", ""),
               *raw = fth_config_text_or(cfg, "focus.raw", "");
    if (*times && !fo_range_parse(times, &out->times))
        return wrong(err, "times", "A:B or A:B:STEP with A below B", times);
    if (out->has_planes && (!fo_range_parse(planes, &out->planes) || out->planes.step != 1))
        return wrong(err, "z-range", "A:B with A below B", planes);
    if (out->is_raw && !parse_raw(raw, &out->raw))
        return wrong(err, "raw", "Z,Y,X,DTYPE[,OFFSET] with dtype u8, u16 or f32", raw);
    if (out->has_planes && out->z_keep)
        return FTH_FAIL(err, FTH_E_COMMAND, "--z-keep and --z-range both select planes: give one");
    return FTH_OK;
}
