/* rename.c - the same data under other axis names.
 *
 * Along a renamed axis the relation is WHOLE: two names of one size may meet in a later operation
 * (a Gram matrix of rows with themselves), and streaming both in lockstep would be wrong.
 */
#include "base/assert.h"
#include "ops/build.h"
#include "ops/move.h"

typedef struct rename_attr {
    int32_t n;
    fth_axis_id from[FTH_MAX_AXES], to[FTH_MAX_AXES];
} rename_attr;

static int renamed(const rename_attr *attr, fth_axis_id axis)
{
    for (int i = 0; i < attr->n; i++)
        if (attr->from[i] == axis) return i;
    return -1;
}

static fth_status infer(fth_node *node, fth_err *err)
{
    const rename_attr *attr = node->attr;
    char a[FTH__SHAPE_TEXT];
    fth_desc d = node->in[0];
    for (int i = 0; i < attr->n; i++) {
        int dim;
        FTH_TRY(fth__need_axis(node, 0, attr->from[i], &dim, err));
        const int64_t size = fth__size_of(node->graph, attr->to[i]);
        if (size != d.size[dim]) {
            const fth_status s = FTH_FAIL(err, FTH_E_AXIS_SIZE,
                                          "rename: '%s' has %lld elements and '%s' has %lld, in %s",
                                          fth__name_of(node, attr->from[i]), (long long)d.size[dim],
                                          fth__name_of(node, attr->to[i]), (long long)size,
                                          fth_in_format(node, 0, a, sizeof a));
            fth_err_hint(err, "declare the new name with fth_axis_like(g, \"%s\", \"%s\")",
                         fth__name_of(node, attr->to[i]), fth__name_of(node, attr->from[i]));
            return s;
        }
        d.axis[dim] = attr->to[i];
    }
    for (int i = 0; i < d.n_axes; i++)
        for (int k = 0; k < i; k++)
            if (d.axis[i] == d.axis[k])
                return FTH_FAIL(err, FTH_E_AXIS_MISMATCH, "rename: %s would have axis '%s' twice",
                                fth_in_format(node, 0, a, sizeof a), fth__name_of(node, d.axis[i]));
    node->n_out = 1;
    node->out[0] = d;
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    if (renamed(node->attr, node->in[in].axis[dim]) >= 0)
        fth__rel_whole(out);
    else
        fth__rel_same(out, dim);
}

static fth_status run(const fth_call *call)
{
    int to[FTH_MAX_AXES];
    for (int i = 0; i < call->node->in[0].n_axes; i++) to[i] = i;
    return fth__move_same(call, to);
}

static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    const rename_attr *attr = node->attr;
    char from[FTH__AXES_TEXT], to[FTH__AXES_TEXT];
    (void)err;
    in_bar[0] = fth_rename_(node->site, out_bar[0],
                            fth__axes_text(node->graph, attr->n, attr->to, to, sizeof to),
                            fth__axes_text(node->graph, attr->n, attr->from, from, sizeof from));
    return FTH_OK;
}

const fth_op fth__op_rename = {.name = "rename",
                               .brief = "the same data under other axis names",
                               .flags = FTH_OP_ALIAS | FTH_OP_CHEAP,
                               .infer = infer,
                               .relation = relation,
                               .vjp = vjp,
                               .run = run};

fth_val fth_rename_(fth_site site, fth_val v, const char *from, const char *to)
{
    rename_attr attr = {0};
    int n_to;
    if (!fth__build_axes(v, site, from, &attr.n, attr.from)) return fth__poison(v);
    if (!fth__build_axes(v, site, to, &n_to, attr.to)) return fth__poison(v);
    if (n_to != attr.n)
        return fth_poison_(v.graph, site, FTH_E_AXIS_NAME,
                           "rename: \"%s\" has %d names and \"%s\" has %d", from, attr.n, to, n_to);
    int n = 0; /* names that stay the same need no node */
    for (int i = 0; i < attr.n; i++) {
        if (attr.from[i] == attr.to[i] && fth_val_has(v, fth_axis_name(v.graph, attr.from[i])))
            continue;
        attr.from[n] = attr.from[i];
        attr.to[n++] = attr.to[i];
    }
    FTH_ASSERT(n <= attr.n);
    for (int i = n; i < attr.n; i++) attr.from[i] = attr.to[i] = 0; /* attributes are hashed */
    attr.n = n;
    if (n == 0) return v;
    return fth_node_add_(v.graph, site, &fth__op_rename, 1, &v, &attr, sizeof attr);
}
