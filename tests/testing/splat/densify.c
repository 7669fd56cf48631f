/* densify.c - the program of densification. */
#include "testing/splat/densify.h"

const t_attribute_row t_attribute[T_ATTRIBUTES] = {{"means", "xyz", 3},   {"sh0", "band0", 3},
                                                   {"shN", "bands", 45},  {"opacity", "alpha", 1},
                                                   {"scaling", "xyz", 3}, {"rotation", "quat", 4}};

/* Component i of [.. axis] without the axis. */
static fth_val part(fth_val v, const char *axis, int i)
{
    return fth_sum(fth_slice(v, axis, i, "one"), "one");
}

static fth_val number(fth_graph *g, double x)
{
    return fth_const(g, FTH_F32, x);
}

/* a*b - c*d */
static fth_val minor(fth_val a, fth_val b, fth_val c, fth_val d)
{
    return fth_sub(fth_mul(a, b), fth_mul(c, d));
}

/* Noise [split xyz] of the old Gaussian's shape: scaled, then turned by its quaternion. */
static fth_val sample(fth_graph *g, fth_val scaling, fth_val rotation, int stream)
{
    const fth_val zero = fth_const_i64(g, FTH_I64, 0);
    const fth_val v =
        fth_mul(fth_normal(FTH_F32, "split xyz", zero, zero, stream), fth_exp(scaling));
    const fth_val q = fth_mul(rotation, fth_rsqrt(fth_sum(fth_sqr(rotation), "quat")));
    fth_val u[3], x[3], t[3], out[3];
    const fth_val w = part(q, "quat", 0);
    for (int i = 0; i < 3; i++) {
        u[i] = part(q, "quat", i + 1);
        x[i] = part(v, "xyz", i);
    }
    for (int i = 0; i < 3; i++) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        t[i] = fth_add(minor(u[j], x[k], u[k], x[j]), fth_mul(w, x[i]));
    }
    for (int i = 0; i < 3; i++) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        const fth_val turned =
            fth_add(x[i], fth_mul(number(g, 2.0), minor(u[j], t[k], u[k], t[j])));
        out[i] = fth_layout(fth_expand(turned, "one"), "split one");
    }
    return fth_concat(3, out, ((const char *const[]){"one", "one", "one"}), "xyz");
}

void t_densify_axes(fth_graph *g, int64_t rows, int64_t split)
{
    fth_axis(g, "row", rows);
    fth_axis(g, "keep", rows - split);
    fth_axis(g, "split", split);
    fth_axis(g, "all", rows + split);
    fth_axis(g, "one", 1);
    fth_axis(g, "count", 2);
    for (int i = 0; i < T_ATTRIBUTES; i++)
        if (fth_axis_size(g, t_attribute[i].axis) < 0)
            fth_axis(g, t_attribute[i].axis, t_attribute[i].columns);
}

void t_densify(fth_graph *g, const fth_val *old, fth_val seen, fth_val *out)
{
    fth_val child[2][T_ATTRIBUTES];
    const fth_val slope =
        fth_div(part(seen, "count", 0), fth_max(part(seen, "count", 1), number(g, 1.0)));
    const fth_val large = fth_gt(fth_rmax(fth_exp(old[4]), "xyz"), number(g, 0.01));
    const fth_val mask = fth_label(fth_and(fth_gt(slope, number(g, 2e-4)), large), "split mask");
    for (int i = 0; i < T_ATTRIBUTES; i++) {
        const fth_val parent = fth_compact(old[i], "row", mask, "split");
        child[0][i] = child[1][i] = parent;
    }
    const fth_val scaling = child[0][4], rotation = child[0][5];
    for (int c = 0; c < 2; c++) {
        child[c][0] = fth_add(child[c][0], sample(g, scaling, rotation, c));
        child[c][4] = fth_sub(scaling, number(g, 0.47)); /* log 1.6 */
    }
    for (int i = 0; i < T_ATTRIBUTES; i++) {
        const fth_val parts[3] = {fth_compact(old[i], "row", fth_not(mask), "keep"), child[0][i],
                                  child[1][i]};
        out[i] = fth_label(
            fth_concat(3, parts, ((const char *const[]){"keep", "split", "split"}), "all"),
            t_attribute[i].name);
    }
}
