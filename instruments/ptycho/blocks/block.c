/* block.c - arrays of a file as inputs of a graph, and what they say about axes. */
#include "block.h"

#include <stdlib.h>
#include <string.h>

bool pt_block_has(const pt_block *b, const char *name)
{
    for (int64_t i = 0; b->in && fth_npz_name(b->in, i); i++)
        if (strcmp(fth_npz_name(b->in, i), name) == 0) return true;
    return false;
}

static fth_status no_room(const pt_block *b, fth_err *err)
{
    return FTH_FAIL(err, FTH_E_INTERNAL, "%s: too many arrays", b->name);
}

fth_status pt_block_read(pt_block *b, const char *name, pt_array **out, fth_err *err)
{
    if (b->n_arrays == PT_BLOCK_ARRAYS) return no_room(b, err);
    pt_array *a = &b->array[b->n_arrays];
    fth_source source;
    *a = (pt_array){0};
    FTH_TRY(fth_npz_source(b->in, name, &source, err));
    const fth_status s = fth_source_load(&source, b->mem, name, &a->data, err);
    a->dtype = source.dtype;
    a->n_axes = source.n_axes;
    memcpy(a->size, source.size, sizeof a->size);
    snprintf(a->name, sizeof a->name, "%s", name);
    fth_source_close(&source);
    if (s != FTH_OK) return s;
    b->n_arrays++;
    *out = a;
    return FTH_OK;
}

void pt_array_squeeze(pt_array *a, int n)
{
    for (int d = 0; d < a->n_axes && a->n_axes > n;) {
        if (a->size[d] != 1) {
            d++;
            continue;
        }
        memmove(&a->size[d], &a->size[d + 1], sizeof a->size[0] * (size_t)(a->n_axes - d - 1));
        a->n_axes--;
    }
}

fth_dtype pt_block_real(const pt_block *b, const pt_array *a)
{
    const bool wide = a && fth_dtype_real_of(a->dtype) == FTH_F64;
    const bool asked = strcmp(fth_config_text(b->cfg, "precision"), "double") == 0;
    return wide || asked ? FTH_F64 : FTH_F32;
}

/* ---- axes ---- */

/* "images [flat=128 row=78 col=78]" */
static void shape_text(const pt_array *a, const char *axes, char *text, size_t bytes)
{
    size_t n = (size_t)snprintf(text, bytes, "%s [", a->name);
    const char *at = axes;
    for (int d = 0; d < a->n_axes && n < bytes; d++) {
        const size_t word = strcspn(at, " ");
        n += (size_t)snprintf(text + n, bytes - n, "%s%.*s=%lld", d ? " " : "", (int)word, at,
                              (long long)a->size[d]);
        at += word + (at[word] != 0);
    }
    if (n < bytes) snprintf(text + n, bytes - n, "]");
}

fth_status pt_block_axis(pt_block *b, const char *axis, int64_t size, const char *whose,
                         fth_err *err)
{
    for (int i = 0; i < b->n_axes; i++) {
        if (strcmp(b->axis[i].name, axis) != 0) continue;
        if (b->axis[i].size == size) return FTH_OK;
        FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: axis '%s' is %lld in %s but %lld in %s", b->name, axis,
                 (long long)b->axis[i].size, b->axis[i].shape, (long long)size, whose);
        fth_err_hint(err,
                     "both arrays need the same number of items: nothing is broadcast or dropped");
        return FTH_E_FILE_SHAPE;
    }
    if (b->n_axes == PT_BLOCK_AXES) return no_room(b, err);
    snprintf(b->axis[b->n_axes].name, sizeof b->axis[0].name, "%s", axis);
    snprintf(b->axis[b->n_axes].shape, sizeof b->axis[0].shape, "%s", whose);
    b->axis[b->n_axes++].size = size;
    fth_axis(b->g, axis, size);
    return FTH_OK;
}

static int words_of(const char *axes)
{
    int n = *axes ? 1 : 0;
    for (const char *p = axes; *p; p++) n += *p == ' ';
    return n;
}

static fth_status wrong_rank(const pt_block *b, const pt_array *a, const char *axes, fth_err *err)
{
    char shape[100] = "(";
    size_t n = 1;
    for (int d = 0; d < a->n_axes; d++)
        n += (size_t)snprintf(shape + n, sizeof shape - n, "%s%lld", d ? ", " : "",
                              (long long)a->size[d]);
    snprintf(shape + n, sizeof shape - n, ")");
    FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: '%s' of %s has the shape %s, expected [%s]", b->name,
             a->name, b->in_path ? b->in_path : "memory", shape, axes);
    return FTH_E_FILE_SHAPE;
}

static fth_val cast_to(fth_val v, fth_dtype dtype)
{
    if (!fth_val_ok(v) || fth_val_dtype(v) == dtype) return v;
    return fth_cast(v, dtype);
}

fth_status pt_block_input(pt_block *b, const pt_array *a, const char *axes, fth_dtype dtype,
                          fth_val *out, fth_err *err)
{
    char shape[160], name[40];
    const char *at = axes;
    if (a->n_axes != words_of(axes)) return wrong_rank(b, a, axes, err);
    if (fth_dtype_is_complex(a->dtype) && !fth_dtype_is_complex(dtype))
        return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: '%s' is %s, expected real numbers", b->name,
                        a->name, fth_dtype_name(a->dtype));
    shape_text(a, axes, shape, sizeof shape);
    for (int d = 0; d < a->n_axes; d++) {
        const size_t word = strcspn(at, " ");
        snprintf(name, sizeof name, "%.*s", (int)word, at);
        FTH_TRY(pt_block_axis(b, name, a->size[d], shape, err));
        at += word + (at[word] != 0);
    }
    fth_source s = {
        .kind = "memory", .dtype = a->dtype, .n_axes = a->n_axes, .data = fth_tensor_data(a->data)};
    memcpy(s.size, a->size, sizeof s.size);
    *out = cast_to(fth_input(b->g, a->name, a->dtype, axes, s), dtype);
    return FTH_OK;
}

fth_status pt_block_get(pt_block *b, const char *name, const char *axes, fth_dtype dtype,
                        fth_val *out, fth_err *err)
{
    pt_array *a;
    FTH_TRY(pt_block_read(b, name, &a, err));
    pt_array_squeeze(a, words_of(axes));
    return pt_block_input(b, a, axes, dtype, out, err);
}

fth_status pt_block_made(pt_block *b, const char *name, fth_dtype dtype, const char *axes,
                         int n_axes, const int64_t *size, const void *data, fth_val *out,
                         fth_err *err)
{
    if (b->n_arrays == PT_BLOCK_ARRAYS) return no_room(b, err);
    pt_array *a = &b->array[b->n_arrays];
    *a = (pt_array){.dtype = dtype, .n_axes = n_axes};
    snprintf(a->name, sizeof a->name, "%s", name);
    FTH_TRY(fth_tensor_create(&a->data, b->mem, name, dtype, n_axes, size, err));
    for (int d = 0; d < n_axes; d++) a->size[d] = size[d];
    memcpy(fth_tensor_data(a->data), data, fth_tensor_bytes(a->data));
    b->n_arrays++;
    return pt_block_input(b, a, axes, dtype, out, err);
}

void pt_block_put(pt_block *b, const char *name, fth_val v)
{
    if (b->n_outs == PT_BLOCK_OUTS) return;
    snprintf(b->out[b->n_outs].name, sizeof b->out[0].name, "%s", name);
    b->out[b->n_outs++].v = v;
}

/* ---- arrays that come in several layouts ---- */

fth_status pt_block_rel(pt_block *b, fth_dtype real, fth_val *out, fth_err *err)
{
    pt_array *a;
    FTH_TRY(pt_block_read(b, "coords_relative", &a, err));
    if (a->n_axes == 4 && a->size[1] == 1 && a->size[2] == 2) { /* channels last */
        a->size[1] = 2;
        a->size[2] = a->size[3];
        a->n_axes = 3;
        FTH_TRY(pt_block_input(b, a, "group xy chan", real, out, err));
        *out = fth_layout(*out, "group chan xy");
        return FTH_OK;
    }
    if (a->n_axes == 4 && a->size[2] == 1) {
        a->size[2] = a->size[3];
        a->n_axes = 3;
    }
    return pt_block_input(b, a, "group chan xy", real, out, err);
}

fth_status pt_block_probe(pt_block *b, fth_dtype real, fth_val *out, fth_err *err)
{
    pt_array *a;
    FTH_TRY(pt_block_read(b, "probe", &a, err));
    if (a->n_axes == 2) {
        a->size[2] = a->size[1];
        a->size[1] = a->size[0];
        a->size[0] = 1;
        a->n_axes = 3;
    }
    if (a->n_axes == 3 && a->size[2] == 1 && a->size[0] > 1) { /* (N, N, 1) */
        a->size[2] = a->size[1];
        a->size[0] = 1;
    }
    const fth_dtype dtype = fth_dtype_complex_of(real);
    if (a->n_axes == 5 && (a->size[0] > 1 || a->size[1] > 1)) /* one for each pattern */
        return pt_block_input(b, a, "group chan mode row col", dtype, out, err);
    pt_array_squeeze(a, 3);
    return pt_block_input(b, a, "mode row col", dtype, out, err);
}
