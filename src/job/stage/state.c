/* state.c - a model or a checkpoint as one file: tensors, numbers as metadata, and the settings it
 * was made with, so that a stage resumes only from its own checkpoints. */
#include "mem/heap.h"

#include "base/assert.h"

#include <fathom/stage.h>

#include <string.h>

/* Whether n bytes are the whole of a name. */
static bool same_name(const char *a, size_t n, const char *name)
{
    return strncmp(a, name, n) == 0 && name[n] == '\0';
}

/* ---- ties ---- */

void fth_ties_add(fth_ties *t, const char *key, const char *value)
{
    const int i = t->n++;
    if (i >= FTH_TIES) return;
    snprintf(t->value[i], FTH_TIE, "%s", value ? value : "");
    t->meta[i] = (fth_file_meta){key, t->value[i]};
}

void fth_ties_init(fth_ties *t, const fth_stage_call *call, const char *const *keys, int n_keys)
{
    char value[FTH_TIE];
    *t = (fth_ties){0};
    snprintf(value, sizeof value, "%d", call->stage->algorithm);
    fth_ties_add(t, "algorithm", value);
    for (int i = 0; i < n_keys; i++) {
        if (fth_config_value(call->config, keys[i], value, sizeof value) >= sizeof value)
            snprintf(value, sizeof value, "xxh64 %016llx", /* as a whole, or two could look alike */
                     (unsigned long long)fth_config_hash(call->config, keys[i]));
        fth_ties_add(t, keys[i], value);
    }
}

static fth_status count_ties(const fth_ties *ties, fth_err *err)
{
    if (!ties || ties->n <= FTH_TIES) return FTH_OK;
    return FTH_FAIL(err, FTH_E_USAGE, "a state has at most %d ties, not %d", (int)FTH_TIES,
                    ties->n);
}

static fth_status check_ties(const fth_safetensors *f, const fth_ties *ties, fth_err *err)
{
    for (int i = 0; ties && i < ties->n; i++) {
        const fth_file_meta now = ties->meta[i];
        const char *then = fth_safetensors_meta(f, now.key);
        if (!then || strcmp(then, now.value) != 0)
            return FTH_FAIL(err, FTH_E_STATE, "%s was %s, is %s", now.key,
                            then ? then : "not given", now.value);
    }
    return FTH_OK;
}

/* ---- making ---- */

static void release_all(const fth_state_row *row, int n)
{
    for (int i = 0; i < n; i++)
        if (row[i].tensor) {
            fth_tensor_release(*row[i].tensor);
            *row[i].tensor = NULL;
        }
}

static fth_status make_tensor(fth_mem *mem, const fth_state_row *row, const fth_extent *extent,
                              int n_extents, fth_err *err)
{
    int64_t size[FTH_MAX_AXES];
    int axes = 0;
    for (const char *at = row->axes; *(at += strspn(at, " ")); at += strcspn(at, " "), axes++) {
        int k = 0;
        while (k < n_extents && !same_name(at, strcspn(at, " "), extent[k].axis)) k++;
        if (k == n_extents || axes == FTH_MAX_AXES)
            return FTH_FAIL(err, FTH_E_USAGE,
                            "tensor '%s' [%s]: an axis has no size, or there are "
                            "too many",
                            row->name, row->axes);
        size[axes] = extent[k].size;
    }
    FTH_TRY(fth_tensor_create(row->tensor, mem, row->name, row->dtype, axes, size, err));
    memset(fth_tensor_data(*row->tensor), 0, (size_t)fth_tensor_bytes(*row->tensor));
    return FTH_OK;
}

fth_status fth_state_create(fth_mem *mem, const fth_state_row *row, int n, const fth_extent *extent,
                            int n_extents, fth_err *err)
{
    fth_status s = FTH_OK;
    for (int i = 0; s == FTH_OK && i < n; i++)
        if (row[i].tensor) s = make_tensor(mem, &row[i], extent, n_extents, err);
    if (s != FTH_OK) release_all(row, n);
    return s;
}

/* ---- saving ---- */

typedef struct parts {
    fth_file_tensor *tensor;
    fth_file_meta *meta;
    char (*text)[FTH_NUMBER];
} parts;

static const char *print_number(const fth_state_row *row, char text[FTH_NUMBER])
{
    if (row->number) return fth_number_format(text, FTH_NUMBER, *row->number, 17);
    snprintf(text, FTH_NUMBER, "%lld", (long long)*row->count);
    return text;
}

static fth_status save_parts(fth_mem *mem, const char *path, const fth_state_row *row, int n,
                             const fth_ties *ties, const parts *p, fth_err *err)
{
    int64_t tensors = 0, numbers = 0;
    for (int i = 0; i < n; i++) {
        if (row[i].tensor)
            p->tensor[tensors++] = (fth_file_tensor){row[i].name, *row[i].tensor, row[i].axes};
        else
            p->meta[numbers++] = (fth_file_meta){row[i].name, print_number(&row[i], p->text[i])};
    }
    for (int i = 0; ties && i < ties->n; i++) p->meta[numbers++] = ties->meta[i];
    FTH_ASSERT(tensors <= n && numbers <= n + FTH_TIES); /* what fth_state_save made room for */
    const fth_safetensors_options opt = {.meta = p->meta, .n_meta = numbers};
    return fth_safetensors_save(mem, path, p->tensor, tensors, &opt, err);
}

fth_status fth_state_save(fth_mem *mem, const char *path, const fth_state_row *row, int n,
                          const fth_ties *ties, fth_err *err)
{
    parts p = {0};
    FTH_TRY(count_ties(ties, err));
    fth_status s = fth__heap_take(mem, n, sizeof *p.tensor, (void **)&p.tensor, err);
    if (s == FTH_OK) s = fth__heap_take(mem, n, sizeof *p.text, (void **)&p.text, err);
    if (s == FTH_OK) s = fth__heap_take(mem, n + FTH_TIES, sizeof *p.meta, (void **)&p.meta, err);
    if (s == FTH_OK) s = save_parts(mem, path, row, n, ties, &p, err);
    fth__heap_free(mem, p.tensor);
    fth__heap_free(mem, p.text);
    fth__heap_free(mem, p.meta);
    return s;
}

/* ---- loading ---- */

/* Axis k of tensor i has the size of the first axis of that name. */
static bool axis_fits(const fth_state_row *row, int i, int k, const char *name, size_t n)
{
    for (int j = 0; j <= i; j++) {
        int axis = 0;
        if (!row[j].tensor) continue;
        for (const char *at = row[j].axes; *(at += strspn(at, " ")); at += strcspn(at, " "), axis++)
            if (strcspn(at, " ") == n && memcmp(at, name, n) == 0)
                return fth_tensor_size(*row[j].tensor, axis) == fth_tensor_size(*row[i].tensor, k);
    }
    return false;
}

static fth_status check_tensor(const fth_state_row *row, int i, fth_err *err)
{
    const fth_tensor *t = *row[i].tensor;
    int axes = 0;
    bool fits = fth_tensor_dtype(t) == row[i].dtype;
    for (const char *at = row[i].axes; *(at += strspn(at, " ")); at += strcspn(at, " "), axes++)
        fits = fits && axes < fth_tensor_axes(t) && fth_tensor_size(t, axes) > 0 &&
               axis_fits(row, i, axes, at, strcspn(at, " "));
    if (fits && axes == fth_tensor_axes(t)) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_SHAPE, "tensor '%s' should be %s [%s]", row[i].name,
                    fth_dtype_name(row[i].dtype), row[i].axes);
}

static fth_status load_rows(fth_safetensors *f, fth_mem *mem, const fth_state_row *row, int n,
                            fth_err *err)
{
    for (int i = 0; i < n; i++) {
        if (row[i].tensor) {
            FTH_TRY(fth_safetensors_load(f, row[i].name, mem, row[i].tensor, err));
            FTH_TRY(check_tensor(row, i, err));
        } else {
            const char *text = fth_safetensors_meta(f, row[i].name);
            if (!(row[i].number ? fth_real_parse(text, row[i].number)
                                : text && fth_int_parse(text, row[i].count)))
                return FTH_FAIL(err, FTH_E_FILE_KEY, "%s is expected to be a number, found %s",
                                row[i].name, text ? text : "nothing");
        }
    }
    return FTH_OK;
}

fth_status fth_state_load(fth_mem *mem, const char *path, const fth_state_row *row, int n,
                          const fth_ties *ties, fth_err *err)
{
    fth_safetensors *f = NULL;
    FTH_TRY(count_ties(ties, err));
    FTH_TRY(fth_safetensors_open(&f, mem, path, err));
    fth_status s = check_ties(f, ties, err);
    if (s == FTH_OK) s = fth_safetensors_verify(f, NULL, err);
    if (s == FTH_OK) s = load_rows(f, mem, row, n, err);
    fth_safetensors_close(f);
    if (s == FTH_OK) return FTH_OK;
    release_all(row, n);
    return fth_err_note(err, FTH_HERE, s, "reading %s", path);
}
