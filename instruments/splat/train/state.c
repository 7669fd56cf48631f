/* state.c - see state.h. */
#include "state.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char format[] = "fathom splat training 1";
static const char from_key[] = "resumed_from"; /* not there where nothing was */
static const char *const part_names[GS_PARTS] = {"", "first.", "second."};

enum { TENSORS = GS_PARTS * GS_ATTRIBUTES + 1, NAME = 48, SHAPE = 160 };

static void put_state(gs_facts *l, const gs_state *s)
{
    gs_facts_text(l, "format", format);
    gs_facts_text(l, "library", fth_version());
    gs_facts_count(l, "iteration", s->iteration);
    gs_facts_count(l, "sh_degree", s->rows.degree);
    gs_facts_count(l, "active_sh_degree", s->degree);
    gs_facts_real(l, "scene_scale", s->scale);
    gs_facts_real(l, "means_lr", s->rate);
    gs_facts_count(l, "unseen", s->unseen);
    gs_facts_count(l, "losses", s->losses);
    if (s->from[0]) gs_facts_text(l, from_key, s->from);
    for (int a = 0; a < GS_ATTRIBUTES; a++) {
        char key[NAME];
        snprintf(key, sizeof key, "steps.%s", gs_attribute_names[a]);
        gs_facts_count(l, key, s->count[a]);
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
        gs_facts l;
        fth_file_tensor t[TENSORS + GS_STATE_PARTS];
        char name[TENSORS][NAME];
    } *w = NULL;
    fth_mem *mem = fth_context_mem(s->rows.context);
    void *block = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_META, sizeof *w, "list of a checkpoint", &block, err));
    w = block;
    memset(w, 0, sizeof *w);
    put_state(&w->l, s);
    gs_origin_put(&w->l, from);
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

/* What differs goes to `other`; NULL: it is a failure. */
static fth_status compare(const fth_safetensors *file, const gs_origin *from, fth_mem *mem,
                          gs_differences *other, fth_err *err)
{
    gs_differences here;
    FTH_TRY(gs_origin_compare(file, from, mem, &here, err));
    if (other) {
        *other = here;
        return FTH_OK;
    }
    if (!here.settings[0] && !here.capture[0]) return FTH_OK;
    return FTH_FAIL(err, FTH_E_STATE, "%s%s%s%s", here.settings,
                    here.settings[0] && here.capture[0] ? "; " : "",
                    here.capture[0] ? "of the capture: " : "", here.capture);
}

static fth_status read_state(gs_state *s, fth_safetensors *file, const char *path, int64_t *degree,
                             fth_err *err)
{
    const char *what = fth_safetensors_meta(file, "format"),
               *from = fth_safetensors_meta(file, from_key);
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
    snprintf(s->from, sizeof s->from, "%s", from ? from : "");
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

/* "[image=12 affine=12]", by the names of the axes. */
static void put_shape(const char *axes, int n, const int64_t *size, char text[SHAPE])
{
    size_t used = (size_t)snprintf(text, SHAPE, "[");
    for (int d = 0; d < n && used < SHAPE; d++) {
        const size_t length = strcspn(axes, " ");
        used += (size_t)snprintf(text + used, SHAPE - used, "%s%.*s%s%" PRId64, d ? " " : "",
                                 (int)length, axes, length ? "=" : "", size[d]);
        axes += length;
        axes += *axes == ' ';
    }
    if (used < SHAPE) snprintf(text + used, SHAPE - used, "]");
}

/* One tensor of the file. That it has another shape is told with the names of the axes. */
static fth_status fill_one(fth_safetensors *file, const char *path, const fth_file_tensor *t,
                           fth_err *err)
{
    fth_source in;
    int64_t size[FTH_MAX_AXES] = {0};
    char found[SHAPE], wanted[SHAPE];
    const int n = fth_tensor_axes(t->tensor);
    FTH_TRY(fth_safetensors_source(file, t->name, &in, err));
    bool same = in.n_axes == n;
    for (int d = 0; d < n; d++) {
        size[d] = fth_tensor_size(t->tensor, d);
        same = same && in.size[d] == size[d];
    }
    put_shape(t->axes, in.n_axes, in.size, found);
    fth_source_close(&in);
    if (same) return fth_safetensors_fill(file, t->name, t->tensor, err);
    put_shape(t->axes, n, size, wanted);
    FTH_FAIL(err, FTH_E_FILE_SHAPE,
             "%s: '%s': expected %s for this capture and these settings, found %s", path, t->name,
             wanted, found);
    fth_err_hint(err, "give the capture and the settings that the checkpoint was made with; "
                      "--init-ply FILE starts from its Gaussians alone");
    return FTH_E_FILE_SHAPE;
}

static fth_status fill(gs_state *s, fth_safetensors *file, const char *path, fth_err *err)
{
    fth_file_tensor list[TENSORS];
    char name[TENSORS][NAME];
    const int n = list_tensors(&s->rows, list, name);
    int64_t checked = 0;
    FTH_TRY(fth_safetensors_verify(file, &checked, err));
    for (int i = 0; i < n; i++) FTH_TRY(fill_one(file, path, &list[i], err));
    return FTH_OK;
}

fth_status gs_state_load(gs_state *s, fth_context *ctx, int64_t most, const gs_origin *from,
                         const char *path, gs_differences *other, fth_err *err)
{
    fth_safetensors *file = NULL;
    int64_t n = 0, degree = 0;
    bool densify = false;
    *s = (gs_state){0};
    FTH_TRY(fth_safetensors_open(&file, fth_context_mem(ctx), path, err));
    fth_status st = read_state(s, file, path, &degree, err);
    if (st == FTH_OK) st = compare(file, from, fth_context_mem(ctx), other, err);
    if (st == FTH_OK) st = count_rows(file, path, &n, &densify, err);
    if (st == FTH_OK)
        st = gs_rows_create(&s->rows, ctx, n, most > n ? most : n, (int)degree,
                            GS_ROWS_ADAM | (densify ? GS_ROWS_DENSIFY : 0) | gs_rows_place(ctx),
                            err);
    if (st == FTH_OK) st = fill(s, file, path, err);
    fth_safetensors_close(file);
    if (st != FTH_OK) gs_state_free(s);
    return st;
}

bool gs_state_is_from(fth_mem *mem, const char *path, const char *hash)
{
    fth_safetensors *file = NULL;
    if (fth_safetensors_open(&file, mem, path, NULL) != FTH_OK) return false;
    const char *from = fth_safetensors_meta(file, from_key);
    const bool is = from && strcmp(from, hash) == 0;
    fth_safetensors_close(file);
    return is;
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
        if (all || has_tensor(file, s->part[i].name)) st = fill_one(file, path, &s->part[i], err);
    fth_safetensors_close(file);
    return st;
}

void gs_state_free(gs_state *s)
{
    gs_rows_free(&s->rows);
    *s = (gs_state){0};
}
