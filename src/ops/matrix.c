/* matrix.c - checks and batches of operations on matrices over two named axes. */
#include "ops/matrix.h"

#include "base/assert.h"
#include "base/str.h"

bool fth__build_matrix(fth_val v, fth_site site, const char *what, const char *row, const char *col,
                       fth__matrix_attr *attr)
{
    return fth__build_axis(v, site, what, row, &attr->row) &&
           fth__build_axis(v, site, what, col, &attr->col);
}

fth_status fth__need_square(const fth_node *node, int in, fth__matrix_attr attr, fth_err *err)
{
    int row, col;
    char text[FTH__SHAPE_TEXT];
    const fth_desc *d = &node->in[in];
    FTH_TRY(fth__need_axis(node, in, attr.row, &row, err));
    FTH_TRY(fth__need_axis(node, in, attr.col, &col, err));
    if (row == col || d->size[row] != d->size[col]) {
        const fth_status s = FTH_FAIL(
            err, FTH_E_AXIS_MISMATCH, "%s: '%s' and '%s' of %s are not two axes of one size",
            node->op->name, fth__name_of(node, attr.row), fth__name_of(node, attr.col),
            fth_in_format(node, in, text, sizeof text));
        fth_err_hint(err, "a square matrix needs a second name for its size: fth_axis_like");
        return s;
    }
    const bool ok = d->dtype == FTH_F32 || d->dtype == FTH_F64 || fth_dtype_is_complex(d->dtype);
    return ok ? FTH_OK : fth__fail_dtype(node, in, "f32 f64 c64 c128", err);
}

void fth__batch_init(fth__batch *b, const fth_desc *d, const fth_tile *t, fth_axis_id row,
                     fth_axis_id col)
{
    *b = (fth__batch){.row = fth_desc_find(d, row), .col = fth_desc_find(d, col)};
    FTH_ASSERT(b->row >= 0 && b->col >= 0 && b->row != b->col);
    b->n_row = t->extent[b->row];
    b->n_col = t->extent[b->col];
    b->s_row = t->stride[b->row];
    b->s_col = t->stride[b->col];
    for (int i = 0; i < d->n_axes; i++)
        if (i != b->row && i != b->col) {
            b->dim[b->loop.n] = i;
            fth__loop_add(&b->loop, t->extent[i], t->stride[i], 0, 0, 0);
        }
}

void fth__batch_follow(fth__batch *b, int k, const fth_desc *of, const fth_desc *d,
                       const fth_tile *t)
{
    FTH_ASSERT(k >= 1 && k < FTH__LOOP_ARRAYS);
    for (int i = 0; i < b->loop.n; i++) {
        const int at = fth_desc_find(d, of->axis[b->dim[i]]);
        b->loop.stride[i][k] = at < 0 ? 0 : t->stride[at];
    }
}

const char *fth__batch_text(const fth__batch *b, const fth_node *node, int in, const fth_tile *t,
                            char *text, size_t bytes)
{
    fth__text out;
    fth__text_init(&out, text, bytes);
    for (int i = 0; i < b->loop.n; i++)
        fth__text_add(&out, "%s%s=%lld", i ? " " : "",
                      fth__name_of(node, node->in[in].axis[b->dim[i]]),
                      (long long)(t->origin[b->dim[i]] + b->loop.index[i]));
    return text;
}

const char *fth__fresh_axis(const fth_node *node, const char *like, char *text, size_t bytes)
{
    fth__text out;
    fth__text_init(&out, text, bytes);
    fth__text_add(&out, "_%s_%u", node->op->name, (unsigned)node->out_val[0].id);
    fth_axis_like_(node->graph, node->site, text, like);
    return text;
}

fth_val fth__conj(fth_site site, fth_val v)
{
    return fth_dtype_is_complex(fth_val_dtype(v)) ? fth__map1(site, FTH_EW_CONJ, v) : v;
}
