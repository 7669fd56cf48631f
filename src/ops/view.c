/* view.c - how each view reads its operand, and what part of it a chunk needs. */
#include "ops/view.h"

#include "base/assert.h"
#include "base/checked.h"
#include "ops/build.h"
#include "ops/window.h"

_Static_assert((int)FTH__BORDER_ZERO == (int)FTH_BORDER_ZERO &&
                   (int)FTH__BORDER_CLAMP == (int)FTH_BORDER_CLAMP &&
                   (int)FTH__BORDER_REFLECT == (int)FTH_BORDER_REFLECT &&
                   (int)FTH__BORDER_MIRROR == (int)FTH_BORDER_MIRROR &&
                   (int)FTH__BORDER_WRAP == (int)FTH_BORDER_WRAP,
               "borders have one number each");

/* Index by index along the axis at the same place. */
static fth__view_step straight(int dim)
{
    return (fth__view_step){
        .along = dim, .tap = -1, .mul = 1, .div = 1, .border = FTH__BORDER_NONE};
}

static fth__view_step of_window(const fth_node *node, int dim)
{
    const fth__window_attr *attr = node->attr;
    const fth_desc *d = &node->in[0];
    fth__view_step v = straight(dim);
    if (d->axis[dim] != attr->axis) return v;
    v.tap = d->n_axes;
    v.tap_mul = 1;
    v.add = -attr->lo;
    v.border = attr->border;
    return v;
}

static fth__view_step of_slice(const fth_node *node, int dim)
{
    const fth__slice_attr *attr = node->attr;
    fth__view_step v = straight(dim);
    if (node->in[0].axis[dim] == attr->axis) v.mul = attr->step, v.add = attr->from;
    return v;
}

static fth__view_step of_pad(const fth_node *node, int dim)
{
    const fth__pad_attr *attr = node->attr;
    fth__view_step v = straight(dim);
    if (node->in[0].axis[dim] == attr->axis)
        v.add = -attr->before, v.border = FTH__BORDER_ZERO, v.fill = attr->value;
    return v;
}

static fth__view_step of_flip(const fth_node *node, int dim)
{
    const fth__axis_attr *attr = node->attr;
    fth__view_step v = straight(dim);
    if (node->in[0].axis[dim] == attr->axis) v.mul = -1, v.add = node->in[0].size[dim] - 1;
    return v;
}

static fth__view_step of_upsample(const fth_node *node, int dim)
{
    const fth__upsample_attr *attr = node->attr;
    fth__view_step v = straight(dim);
    if (node->in[0].axis[dim] == attr->axis) v.div = attr->factor;
    return v;
}

static const struct {
    const fth_op *op;
    fth__view_step (*step)(const fth_node *node, int dim);
} views[] = {{&fth__op_window, of_window},
             {&fth__op_slice, of_slice},
             {&fth__op_pad, of_pad},
             {&fth__op_flip, of_flip},
             {&fth__op_upsample, of_upsample}};
enum { N_VIEWS = sizeof views / sizeof views[0] };

static int row_of(const fth_node *node)
{
    for (int i = 0; i < N_VIEWS; i++)
        if (views[i].op == node->op) return i;
    return -1;
}

bool fth__is_view(const fth_node *node)
{
    /* a value that is spread out has numbers of the border between its elements */
    return row_of(node) >= 0 &&
           (node->op != &fth__op_pad || ((const fth__pad_attr *)node->attr)->step == 1);
}

fth__view_step fth__view_of(const fth_node *node, int dim)
{
    FTH_ASSERT(fth__is_view(node) && dim < node->in[0].n_axes);
    return views[row_of(node)].step(node, dim);
}

const fth__view_axis *fth__view_find(const fth__program *p, int in, int dim)
{
    for (int i = 0; i < p->n_views; i++)
        if (p->view[i].in == in && p->view[i].dim == dim) return &p->view[i];
    return NULL;
}

bool fth__program_reads(const fth__program *p, int in)
{
    for (int i = 0; i < p->n_instr; i++)
        for (int k = 0; k < 3; k++)
            if (p->instr[i].src[k] == in) return true;
    for (int o = 0; o < p->n_out; o++)
        if (p->out_reg[o] == in) return true;
    return false;
}

void fth__view_relation(const fth__program *p, const fth__view_axis *v, int out_dim,
                        fth_relation *out)
{
    const bool around = v->border == FTH__BORDER_WRAP; /* the far end is read as well */
    if (v->along < 0 || v->mul < 1 || out_dim < 0 || around) {
        fth__rel_whole(out);
        return;
    }
    /* raw indices of results [a, b): from mul * a - lo to mul * (b - 1) + hi */
    const int64_t far = v->tap < 0 ? 0 : v->tap_mul * (p->size[v->tap] - 1);
    const int64_t lo = -(v->add + fth__min_i64(far, 0)), hi = v->add + fth__max_i64(far, 0);
    const fth__halo halo = fth__border_halo(v->border, lo, hi);
    if (v->div == 1)
        fth__rel_halo(out, out_dim, v->mul, 1, halo.lo, halo.hi + 1 - v->mul);
    else /* one element more where the step does not divide the distance */
        fth__rel_halo(out, out_dim, v->mul, v->div, (halo.lo + v->div - 1) / v->div + 1,
                      (halo.hi + v->div - 1) / v->div + 1);
}
