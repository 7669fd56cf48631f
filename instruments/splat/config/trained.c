/* trained.c - see trained.h. */
#include "trained.h"

#include <stdio.h>
#include <string.h>

static const char *only_config(void *user, const char *flag)
{
    return strcmp(flag, "config") == 0 ? user : NULL;
}

static const gs_option *option_of(const char *flag, size_t n)
{
    for (const gs_option *o = gs_options; o->key; o++)
        if (strlen(o->flag) == n && strncmp(o->flag, flag, n) == 0) return o;
    return NULL;
}

/* The value of a key as a flag has it: without quotes, "" of a switch. */
static void put_text(const fth_config *cfg, const gs_option *o, char text[GS_TRAINED_TEXT])
{
    char value[GS_TRAINED_TEXT];
    gs_setting_text(cfg, o->key, value, sizeof value);
    const size_t n = strlen(value);
    const bool quoted = n > 1 && value[0] == '"';
    snprintf(text, GS_TRAINED_TEXT, "%.*s", (int)(quoted ? n - 2 : n), value + quoted);
    if (o->type == FTH_CONFIG_BOOL) text[0] = '\0';
}

/* One word of the list: a flag that was not given, and whose key has another value than by itself.
 */
static void take(gs_trained *t, const fth_config *cfg, const fth_config *standard, const char *word,
                 size_t n)
{
    char flag[32];
    const char *equal = memchr(word, '=', n);
    const size_t own = equal ? (size_t)(equal - word) : n;
    const gs_option *o = equal ? option_of(equal + 1, n - own - 1) : option_of(word, n);
    snprintf(flag, sizeof flag, "%.*s", (int)own, word);
    if (!o || t->n == GS_TRAINED_FLAGS || t->value(t->user, flag)) return;
    if (gs_setting_is_same(cfg, standard, o->key) || !fth_config_has(cfg, o->key)) return;
    memcpy(t->flag[t->n], flag, sizeof flag);
    put_text(cfg, o, t->text[t->n]);
    t->n++;
}

static fth_status take_all(gs_trained *t, fth_mem *mem, const fth_config *cfg, const char *flags,
                           fth_err *err)
{
    fth_config *standard = NULL;
    fth_status s = gs_settings_standard(cfg, mem, &standard, err);
    if (s == FTH_OK) s = gs_settings_of(cfg, &t->set, err);
    for (const char *at = flags; s == FTH_OK && *at; at += strspn(at, " ")) {
        const size_t n = strcspn(at, " ");
        take(t, cfg, standard, at, n);
        at += n;
    }
    (void)fth_config_destroy(standard, NULL);
    t->set.data = t->set.images = t->set.init_ply = t->set.masks = t->set.lpips = NULL;
    t->found = s == FTH_OK;
    return s;
}

fth_status gs_trained_open(gs_trained *t, fth_mem *mem, const char *model, const char *flags,
                           fth_flag_value_fn *value, void *user, fth_err *err)
{
    fth_config *cfg = NULL;
    *t = (gs_trained){.value = value, .user = user};
    if (fth_path_kind_of(model) != FTH_PATH_FOLDER) return FTH_OK;
    FTH_TRY(fth_path_join(t->file, model, GS_CONFIG_FILE, err));
    if (fth_path_kind_of(t->file) != FTH_PATH_FILE) return FTH_OK;
    fth_status s = gs_settings_read(&cfg, mem, only_config, t->file, &t->err);
    if (s == FTH_OK) s = take_all(t, mem, cfg, flags, &t->err);
    if (cfg) (void)fth_config_destroy(cfg, NULL);
    if (s != FTH_E_NOMEM && s != FTH_E_BUDGET) return FTH_OK;
    if (err) *err = t->err;
    return s;
}

const char *gs_trained_value(void *trained, const char *flag)
{
    const gs_trained *t = trained;
    for (int i = 0; i < t->n; i++)
        if (strcmp(t->flag[i], flag) == 0) return t->text[i];
    return t->value(t->user, flag);
}

void gs_trained_tell(const gs_trained *t, FILE *notes)
{
    if (t->err.status != FTH_OK)
        fprintf(notes, "warning: settings of the training are not known: %s\n", t->err.text);
    if (t->n == 0) return;
    fprintf(notes, "settings of %s:", t->file);
    for (int i = 0; i < t->n; i++)
        fprintf(notes, "%s --%s%s%s", i ? "," : "", t->flag[i], t->text[i][0] ? " " : "",
                t->text[i]);
    fprintf(notes, "\n");
}
