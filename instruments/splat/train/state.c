/* state.c - see state.h. */
#include "state.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char format[] = "fathom splat training 1";
static const char *const part_names[GS_PARTS] = {"", "first.", "second."};

enum { TENSORS = GS_PARTS * GS_ATTRIBUTES + 1, META = 128, NAME = 48, VALUE = 256 };

/* ---- lines of metadata ---- */

typedef struct lines {
    int n;
    char key[META][NAME], value[META][VALUE];
    fth_file_meta meta[META];
} lines;

static void put_text(lines *l, const char *key, const char *value)
{
    if (l->n == META) return;
    snprintf(l->key[l->n], NAME, "%s", key);
    snprintf(l->value[l->n], VALUE, "%s", value);
    l->meta[l->n] = (fth_file_meta){l->key[l->n], l->value[l->n]};
    l->n++;
}

static void put_real(lines *l, const char *key, double v)
{
    char text[64];
    put_text(l, key, fth_number_format(text, sizeof text, v, 17));
}

static void put_count(lines *l, const char *key, int64_t v)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, v);
    put_text(l, key, text);
}

/* Keys that change how long it takes, what is written and where data lie, but no number. */
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

/* What decides whether a training may go on from it. */
static void put_origin(lines *l, const gs_origin *from)
{
    char value[VALUE], key[NAME];
    put_count(l, "algorithm", GS_TRAIN_ALGORITHM);
    put_count(l, "config.seed", fth_config_int(from->cfg, "seed"));
    for (const gs_option *o = gs_options; o->key; o++) {
        if (is_idle(o->key)) continue;
        gs_setting_text(from->cfg, o->key, value, sizeof value);
        snprintf(key, sizeof key, "config.%s", o->key);
        put_text(l, key, value);
    }
    snprintf(value, sizeof value, "%016" PRIx64, from->data);
    put_text(l, "data", value);
}

static void put_state(lines *l, const gs_state *s)
{
    put_text(l, "format", format);
    put_text(l, "library", fth_version());
    put_count(l, "iteration", s->iteration);
    put_count(l, "sh_degree", s->rows.degree);
    put_count(l, "active_sh_degree", s->degree);
    put_real(l, "scene_scale", s->scale);
    put_real(l, "means_lr", s->rate);
    put_count(l, "unseen", s->unseen);
    put_count(l, "losses", s->losses);
    for (int a = 0; a < GS_ATTRIBUTES; a++) {
        char key[NAME];
        snprintf(key, sizeof key, "steps.%s", gs_attribute_names[a]);
        put_count(l, key, s->count[a]);
    }
}

/* ---- saving ---- */

static int list_tensors(const gs_rows *rows, fth_file_tensor list[TENSORS],
                        char name[TENSORS][NAME])
{
    int n = 0;
    for (int p = 0; p < GS_PARTS; p++)
        for (int a = 0; a < GS_ATTRIBUTES; a++) {
            if (!rows->tensor[p][a] || (a == GS_SH_N && rows->degree == 0)) continue;
            snprintf(name[n], NAME, "%s%s", part_names[p], gs_attribute_names[a]);
            list[n] = (fth_file_tensor){name[n], rows->tensor[p][a], gs_attribute_axes[a]};
            n++;
        }
    if (rows->densify) list[n++] = (fth_file_tensor){"densify", rows->densify, "g sum"};
    return n;
}

fth_status gs_state_save(const gs_state *s, const gs_origin *from, const char *path, fth_err *err)
{
    struct {
        lines l;
        fth_file_tensor t[TENSORS + GS_STATE_PARTS];
        char name[TENSORS][NAME];
    } *w = NULL;
    fth_mem *mem = fth_context_mem(s->rows.context);
    void *block = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_META, sizeof *w, "list of a checkpoint", &block, err));
    w = block;
    memset(w, 0, sizeof *w);
    put_state(&w->l, s);
    put_origin(&w->l, from);
    int n = list_tensors(&s->rows, w->t, w->name);
    for (int i = 0; i < s->parts; i++) w->t[n++] = s->part[i];
    const fth_status st = fth_safetensors_save(
        mem, path, w->t, n, &(fth_safetensors_options){.meta = w->l.meta, .n_meta = w->l.n}, err);
    (void)fth_mem_release(mem, block, NULL);
    return st;
}

/* ---- loading ---- */

static fth_status read_real(fth_safetensors *file, const char *path, const char *key, double *out,
                            fth_err *err)
{
    const char *text = fth_safetensors_meta(file, key);
    if (text && fth_real_parse(text, out) && isfinite(*out)) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: metadata '%s': expected a number, found %s%s%s",
                    path, key, text ? "'" : "", text ? text : "nothing", text ? "'" : "");
}

static fth_status read_count(fth_safetensors *file, const char *path, const char *key, int64_t most,
                             int64_t *out, fth_err *err)
{
    const char *text = fth_safetensors_meta(file, key);
    if (text && fth_int_parse(text, out) && *out >= 0 && *out <= most) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                    "%s: metadata '%s': expected a count up to %" PRId64 ", found %s%s%s", path,
                    key, most, text ? "'" : "", text ? text : "nothing", text ? "'" : "");
}

/* A value of a setting for people: without quotes, and where there is none in words. */
static const char *shown(const char *value, char text[VALUE])
{
    const size_t n = value ? strlen(value) : 0;
    if (n == 0) return "not given";
    const bool quoted = n > 1 && value[0] == '"' && value[n - 1] == '"';
    snprintf(text, VALUE, "%.*s", (int)(quoted ? n - 2 : n), value + quoted);
    return text;
}

static fth_status compare(fth_safetensors *file, const gs_origin *from, fth_mem *mem, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(
        fth_mem_take(mem, FTH_MEM_META, sizeof(lines), "settings of a checkpoint", &block, err));
    lines *l = block;
    fth_status s = FTH_OK;
    memset(l, 0, sizeof *l);
    put_origin(l, from);
    for (int i = 0; i < l->n && s == FTH_OK; i++) {
        const char *then = fth_safetensors_meta(file, l->key[i]);
        if (then && strcmp(then, l->value[i]) == 0) continue;
        const char *key = strncmp(l->key[i], "config.", 7) == 0 ? l->key[i] + 7 : l->key[i];
        char was[VALUE], is[VALUE];
        s = FTH_FAIL(err, FTH_E_STATE, "%s was %s, is %s", key, shown(then, was),
                     shown(l->value[i], is));
    }
    (void)fth_mem_release(mem, block, NULL);
    return s;
}

static fth_status read_state(gs_state *s, fth_safetensors *file, const char *path, int64_t *degree,
                             fth_err *err)
{
    const char *what = fth_safetensors_meta(file, "format");
    if (!what || strcmp(what, format) != 0) {
        FTH_FAIL(err, FTH_E_FILE_KEY, "%s: expected a checkpoint ('%s'), found '%s'", path, format,
                 what ? what : "another file");
        fth_err_hint(err, "checkpoints are OUT/checkpoints/model.safetensors of a training");
        return FTH_E_FILE_KEY;
    }
    FTH_TRY(read_count(file, path, "iteration", INT64_MAX / 2, &s->iteration, err));
    FTH_TRY(read_count(file, path, "sh_degree", GS_DEGREES - 1, degree, err));
    FTH_TRY(read_count(file, path, "active_sh_degree", *degree, &s->degree, err));
    FTH_TRY(read_real(file, path, "scene_scale", &s->scale, err));
    FTH_TRY(read_real(file, path, "means_lr", &s->rate, err));
    FTH_TRY(read_count(file, path, "unseen", INT64_MAX / 2, &s->unseen, err));
    FTH_TRY(read_count(file, path, "losses", INT64_MAX / 2, &s->losses, err));
    for (int a = 0; a < GS_ATTRIBUTES; a++) {
        char key[NAME];
        snprintf(key, sizeof key, "steps.%s", gs_attribute_names[a]);
        FTH_TRY(read_count(file, path, key, INT64_MAX / 2, &s->count[a], err));
    }
    return FTH_OK;
}

static bool has_tensor(fth_safetensors *file, const char *name)
{
    for (int64_t i = 0; i < fth_safetensors_count(file); i++)
        if (strcmp(fth_safetensors_name(file, i), name) == 0) return true;
    return false;
}

/* Rows of a file, by its means. */
static fth_status count_rows(fth_safetensors *file, const char *path, int64_t *n, bool *densify,
                             fth_err *err)
{
    fth_source means;
    FTH_TRY(fth_safetensors_source(file, "means", &means, err));
    *n = means.n_axes > 0 ? means.size[0] : 0;
    fth_source_close(&means);
    *densify = has_tensor(file, "densify");
    if (*n > 0) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: 'means': expected rows, found none", path);
}

static fth_status fill(gs_state *s, fth_safetensors *file, fth_err *err)
{
    fth_file_tensor list[TENSORS];
    char name[TENSORS][NAME];
    const int n = list_tensors(&s->rows, list, name);
    int64_t checked = 0;
    FTH_TRY(fth_safetensors_verify(file, &checked, err));
    for (int i = 0; i < n; i++)
        FTH_TRY(fth_safetensors_fill(file, list[i].name, list[i].tensor, err));
    return FTH_OK;
}

fth_status gs_state_load(gs_state *s, fth_context *ctx, int64_t most, const gs_origin *from,
                         const char *path, fth_err *err)
{
    fth_safetensors *file = NULL;
    int64_t n = 0, degree = 0;
    bool densify = false;
    *s = (gs_state){0};
    FTH_TRY(fth_safetensors_open(&file, fth_context_mem(ctx), path, err));
    fth_status st = read_state(s, file, path, &degree, err);
    if (st == FTH_OK && from) st = compare(file, from, fth_context_mem(ctx), err);
    if (st == FTH_OK) st = count_rows(file, path, &n, &densify, err);
    if (st == FTH_OK)
        st = gs_rows_create(&s->rows, ctx, n, most > n ? most : n, (int)degree,
                            GS_ROWS_ADAM | (densify ? GS_ROWS_DENSIFY : 0) | gs_rows_place(ctx),
                            err);
    if (st == FTH_OK) st = fill(s, file, err);
    fth_safetensors_close(file);
    if (st != FTH_OK) gs_state_free(s);
    return st;
}

void gs_state_add_part(gs_state *s, const char *name, fth_tensor *tensor, const char *axes)
{
    if (s->parts < GS_STATE_PARTS) s->part[s->parts++] = (fth_file_tensor){name, tensor, axes};
}

void gs_state_drop_part(gs_state *s, const char *name)
{
    int kept = 0;
    for (int i = 0; i < s->parts; i++)
        if (strcmp(s->part[i].name, name) != 0) s->part[kept++] = s->part[i];
    s->parts = kept;
}

fth_status gs_state_load_parts(const gs_state *s, fth_mem *mem, bool all, const char *path,
                               fth_err *err)
{
    fth_safetensors *file = NULL;
    if (s->parts == 0) return FTH_OK;
    FTH_TRY(fth_safetensors_open(&file, mem, path, err));
    fth_status st = FTH_OK;
    for (int i = 0; i < s->parts && st == FTH_OK; i++)
        if (all || has_tensor(file, s->part[i].name))
            st = fth_safetensors_fill(file, s->part[i].name, s->part[i].tensor, err);
    fth_safetensors_close(file);
    return st;
}

void gs_state_free(gs_state *s)
{
    gs_rows_free(&s->rows);
    *s = (gs_state){0};
}
