/* origin.c - see origin.h. */
#include "origin.h"

#include "train.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char setting[] = "config."; /* before the names of settings */

/* Parts of a capture: their keys in the file, and their names in messages. */
static const struct {
    const char *key, *name;
} parts[GS_PRINTS] = {
    [GS_PRINT_NAMES] = {"data.names", "other names of images"},
    [GS_PRINT_CAMERAS] = {"data.cameras", "other cameras"},
    [GS_PRINT_IMAGES] = {"data.images", "images whose files have other sizes"},
    [GS_PRINT_MASKS] = {"data.masks", "other masks"},
    [GS_PRINT_POINTS] = {"data.points", "other points"},
    [GS_PRINT_START] = {"data.start", "another model to start from"},
};
static const char all_key[] = "data", views_key[] = "data.views", points_key[] = "data.n_points";

/* Keys that affect duration, outputs and paths, but no result. */
static bool is_idle(const char *key)
{
    static const char *const idle[] = {"data_path",
                                       "output_path",
                                       "images",
                                       "masks",
                                       "init_ply",
                                       "save_steps",
                                       "eval_steps",
                                       "skip_intermediate",
                                       "checkpoint_every",
                                       "max_minutes",
                                       "enable_save_eval_images",
                                       "save_depth",
                                       "render_mode",
                                       "legacy_ssim",
                                       "lpips_weights",
                                       "num_workers",
                                       "save_sog",
                                       "export",
                                       "sog_iterations",
                                       "timelapse_images",
                                       "timelapse_every"};
    for (size_t i = 0; i < sizeof idle / sizeof idle[0]; i++)
        if (strcmp(key, idle[i]) == 0) return true;
    return false;
}

static void put_settings(gs_facts *f, const fth_config *cfg)
{
    char value[GS_FACT_VALUE], key[GS_FACT_NAME];
    gs_facts_count(f, "algorithm", GS_TRAIN_ALGORITHM);
    gs_facts_count(f, "config.seed", fth_config_int(cfg, "seed"));
    for (const gs_option *o = gs_options; o->key; o++) {
        if (is_idle(o->key)) continue;
        gs_setting_text(cfg, o->key, value, sizeof value);
        snprintf(key, sizeof key, "%s%s", setting, o->key);
        gs_facts_text(f, key, value);
    }
}

void gs_origin_put(gs_facts *f, const gs_origin *from)
{
    put_settings(f, from->cfg);
    gs_facts_hash(f, all_key, from->data);
    gs_facts_count(f, views_key, from->views);
    gs_facts_count(f, points_key, from->points);
    for (int k = 0; k < GS_PRINTS; k++) gs_facts_hash(f, parts[k].key, from->print[k]);
}

/* ---- differences ---- */

/* One more, after "; ". */
static void add(char *text, size_t bytes, const char *fmt, ...) FTH_PRINTF(3, 4);
static void add(char *text, size_t bytes, const char *fmt, ...)
{
    const size_t n = strlen(text);
    va_list args;
    if (n > 0) snprintf(text + n, bytes - n, "; ");
    const size_t at = strlen(text);
    va_start(args, fmt);
    vsnprintf(text + at, bytes - at, fmt, args);
    va_end(args);
}

/* A value of a setting for people: without quotes, and where there is none in words. */
static const char *shown(const char *value, char text[GS_FACT_VALUE])
{
    const size_t n = value ? strlen(value) : 0;
    if (n == 0) return "not given";
    const bool quoted = n > 1 && value[0] == '"' && value[n - 1] == '"';
    snprintf(text, GS_FACT_VALUE, "%.*s", (int)(quoted ? n - 2 : n), value + quoted);
    return text;
}

static void compare_settings(const fth_safetensors *file, const gs_facts *now, gs_differences *out)
{
    for (int i = 0; i < now->n; i++) {
        const char *then = fth_safetensors_meta(file, now->key[i]), *key = now->key[i];
        if (then && strcmp(then, now->value[i]) == 0) continue;
        char was[GS_FACT_VALUE], is[GS_FACT_VALUE];
        if (strncmp(key, setting, sizeof setting - 1) == 0) key += sizeof setting - 1;
        add(out->settings, sizeof out->settings, "%s was %s, is %s", key, shown(then, was),
            shown(now->value[i], is));
    }
}

static void compare_count(const fth_safetensors *file, const char *key, const char *what,
                          int64_t now, gs_differences *out)
{
    const char *then = fth_safetensors_meta(file, key);
    int64_t was = now;
    if (!then || !fth_int_parse(then, &was) || was == now) return;
    add(out->capture, sizeof out->capture, "it has %" PRId64 " %s, had %" PRId64, now, what, was);
}

static void compare_capture(const fth_safetensors *file, const gs_origin *from, gs_differences *out)
{
    char text[24];
    const char *then = fth_safetensors_meta(file, all_key);
    snprintf(text, sizeof text, "%016" PRIx64, from->data);
    if (then && strcmp(then, text) == 0) return;
    compare_count(file, views_key, "views", from->views, out);
    compare_count(file, points_key, "points", from->points, out);
    for (int k = 0; k < GS_PRINTS; k++) {
        then = fth_safetensors_meta(file, parts[k].key);
        snprintf(text, sizeof text, "%016" PRIx64, from->print[k]);
        if (then && strcmp(then, text) != 0)
            add(out->capture, sizeof out->capture, "it has %s", parts[k].name);
    }
    if (!out->capture[0]) /* a checkpoint without hashes of the parts */
        add(out->capture, sizeof out->capture, "cameras, names, points or files differ");
}

fth_status gs_origin_compare(const fth_safetensors *file, const gs_origin *from, fth_mem *mem,
                             gs_differences *out, fth_err *err)
{
    void *block = NULL;
    *out = (gs_differences){0};
    FTH_TRY(
        fth_mem_take(mem, FTH_MEM_META, sizeof(gs_facts), "settings of a checkpoint", &block, err));
    gs_facts *now = block;
    memset(now, 0, sizeof *now);
    put_settings(now, from->cfg);
    compare_settings(file, now, out);
    compare_capture(file, from, out);
    (void)fth_mem_release(mem, block, NULL);
    return FTH_OK;
}
