/* random_shapes.c - little programs that operations drawn one by one rarely make.
 *
 * Statistics and what is made with them (two passes), dear values that wait (spilling), gradients,
 * and parameters with what is assigned to them.
 */
#include "testing/engine/op_harness.h"
#include "testing/engine/random_graph.h"

static double elements(rg *g, int i)
{
    return (double)rg_count(rg_val(g, i));
}

/* A computed value, a sum of it over the long axis, and both together: two passes, in the second of
 * which the value is made again or kept. */
bool rg_two_passes(rg *g)
{
    const fth_dtype t = rg_chance(g, 50) ? FTH_F32 : FTH_F64;
    const char *axes = rg_chance(g, 75) ? "s" : rg_chance(g, 50) ? "s b" : "b s";
    int x = rg_input(g, t, axes, RG_FILL_ANY);
    if (x < 0 || rg_size(g, "s") == 0 || !rg_room(g, 4.0 * elements(g, x))) return false;
    const int turns = (int)rg_int(g, 1, 3);
    for (int i = 0; i < turns; i++) {
        const fth_val y =
            rg_chance(g, 50) ? fth_tanh(rg_val(g, x)) : fth_sin(fth_sqr(rg_val(g, x)));
        const fth_val sum = i % 2 ? fth_rmax(y, "s") : fth_mean(y, "s");
        if (!rg_add(g, fth_mul(fth_sub(y, sum), fth_add(sum, fth_const(g->g, t, 2.0))), false, 8.0,
                    1, &x, "%s", "(y - m) * (m + 2), m a mean or max of y = f"))
            return false;
        x = g->n_values - 1;
    }
    return true;
}

/* ---- a dear value that waits ----------------------------------------------------------------- */

/* Something of an input that needs the whole long axis and costs more than to read it again. */
static int dear(rg *g, fth_dtype t, const char *axes)
{
    const int x = rg_input(g, t, axes, RG_FILL_ANY);
    if (x < 0 || !rg_room(g, 3.0 * elements(g, x))) return -1;
    const fth_val v = rg_val(g, x);
    fth_val y;
    bool exact = true;
    double bound = 20.0;
    if (fth_dtype_is_complex(t)) {
        y = rg_chance(g, 50) ? fth_fft(v, "s", "s") : fth_ifft(v, "s", "s");
        bound = 3.0 * (double)rg_size(g, "s");
        exact = false;
    } else if (rg_chance(g, 40) && fth_dtype_is_real(t) && rg_may("own carry")) {
        y = rg_leak_back(g, v, "s");
    } else {
        y = fth_sort(v, "s", rg_chance(g, 50));
    }
    if (!rg_add(g, y, exact, bound, 1, &x, "dear")) return -1;
    return rg_tame(g, g->n_values - 1, 20.0);
}

/* All of z in one number. */
static fth_val summary(fth_val z)
{
    char axes[64];
    rg_axes(z, axes, sizeof axes);
    return fth_dtype_is_complex(fth_val_dtype(z)) ? fth_sum(z, axes) : fth_rmax(z, axes);
}

/* y is made first and used last; in between others are made that need as much room. When that is
 * scarce y belongs on the scratch file for the time. */
bool rg_waits(rg *g)
{
    static const fth_dtype types[] = {FTH_F32, FTH_F64, FTH_I64, FTH_I32, FTH_C64, FTH_C128};
    const int64_t n = rg_size(g, "s");
    const fth_dtype t = types[rg_int(g, 0, n * n <= RG_FFT_WORK && rg_may("fft") ? 5 : 3)];
    if (n < 2) return false;
    int y = dear(g, t, "s");
    const int others = (int)rg_int(g, 1, 3);
    for (int i = 0; i < others && y >= 0; i++) {
        const bool wide = rg_chance(g, 30) && !fth_dtype_is_complex(t);
        const int z = dear(g, t, wide ? "b s" : "s");
        if (z < 0) return i > 0;
        const bool exact = !fth_dtype_is_complex(t);
        const int from[2] = {y, z};
        const double bound = exact ? 40.0 : 20.0 + 20.0 * elements(g, z);
        const fth_val m = wide || rg_chance(g, 50) ? summary(rg_val(g, z)) : rg_val(g, z);
        if (!rg_room(g, elements(g, y)) ||
            !rg_add(g, fth_add(rg_val(g, y), m), exact, bound, 2, from, "with what came later"))
            return false;
        y = rg_tame(g, g->n_values - 1, 20.0);
        g->has[RG_WAITS] = true;
    }
    return y >= 0;
}

/* ---- gradients ------------------------------------------------------------------------------- */

static bool smooth(fth_dtype t)
{
    return t == FTH_F32 || t == FTH_F64 || t == FTH_C64 || t == FTH_C128;
}

/* What value y is made of, itself included. */
static void ancestors(const rg *g, int y, bool *of)
{
    memset(of, 0, RG_VALUES * sizeof *of);
    of[y] = true;
    for (int i = y; i >= 0; i--)
        for (int k = 0; of[i] && k < g->value[i].n_from; k++) of[g->value[i].from[k]] = true;
}

static fth_val square_mean(fth_val y)
{
    char axes[160];
    const fth_val q = fth_dtype_is_complex(fth_val_dtype(y)) ? fth_abs2(y) : fth_sqr(y);
    return fth_val_axes(y) > 0 ? fth_mean(q, rg_axes(y, axes, sizeof axes)) : q;
}

/* The mean square of something, and its gradient for up to two things it is made of. Gradients are
 * compared bit by bit between runs, but not with other roundings: they may be badly conditioned. */
bool rg_gradient(rg *g)
{
    bool of[RG_VALUES];
    for (int tries = 0; tries < 12; tries++) {
        const int y = (int)rg_int(g, 0, g->n_values - 1);
        if (g->value[y].input || g->value[y].hidden || !smooth(fth_val_dtype(rg_val(g, y))) ||
            rg_count(rg_val(g, y)) == 0)
            continue;
        ancestors(g, y, of);
        int n = 0, at[2];
        fth_val wrt[2], grad[2];
        for (int i = 0; i < y && n < 2; i++)
            if (of[i] && smooth(fth_val_dtype(rg_val(g, i))) && rg_chance(g, 70))
                at[n] = i, wrt[n++] = rg_val(g, i);
        if (n == 0 || g->n_values + 4 > RG_VALUES) continue;
        if (fth_grad(square_mean(rg_val(g, y)), n, wrt, grad) != FTH_OK) return false;
        for (int i = 0; i < n; i++) {
            const int from[2] = {y, at[i]};
            if (!rg_add(g, grad[i], false, 1.0, 2, from, "gradient of mean square")) return false;
            g->value[g->n_values - 1].bits = true;
        }
        g->has[RG_GRADIENT] = true;
        return true;
    }
    return false;
}

/* ---- parameters ------------------------------------------------------------------------------ */

bool rg_make_param(rg *g)
{
    static const fth_dtype types[] = {FTH_F32, FTH_F64, FTH_F32, FTH_F64,
                                      FTH_C64, FTH_I64, FTH_BF16};
    static const char *const lists[] = {"s", "a", "t", "s a", "b s", "", "t b"};
    fth_axis_id id[FTH_MAX_AXES];
    int64_t size[FTH_MAX_AXES];
    fth_err err = {0};
    int n;
    rg_param *p = &g->param[g->n_params];
    /* often like the one before: then each may be assigned from the other */
    const bool again = g->n_params > 0 && rg_chance(g, 60);
    char axes[64];
    fth_dtype t = types[rg_int(g, 0, 6)];
    snprintf(axes, sizeof axes, "%s", lists[rg_int(g, 0, 6)]);
    if (again) {
        rg_axes(rg_val(g, g->param[0].value), axes, sizeof axes);
        t = fth_val_dtype(rg_val(g, g->param[0].value));
    }
    if (fth_axes_parse(g->g, axes, &n, id, NULL) != FTH_OK) return false;
    for (int i = 0; i < n; i++) size[i] = rg_size(g, fth_axis_name(g->g, id[i]));
    *p = (rg_param){.assigned = -1, .value = g->n_values};
    if (fth_tensor_create(&p->tensor, fth_context_mem(g->ctx), "param", t, n, size, &err) != FTH_OK)
        return false;
    p->bytes = fth_tensor_bytes(p->tensor);
    p->before = malloc((size_t)p->bytes + 64);
    for (int64_t i = 0; i < (int64_t)p->bytes / fth_dtype_size(t); i++)
        t_put(t, p->before, i, (double)rg_int(g, -16, 16) / 8.0, (double)rg_int(g, -16, 16) / 8.0);
    memcpy(fth_tensor_data(p->tensor), p->before, (size_t)p->bytes);
    char name[16];
    snprintf(name, sizeof name, "param%d", g->n_params++);
    if (!rg_add(g, fth_param(g->g, name, axes, p->tensor), true, 3.0, 0, NULL, "param"))
        return false;
    g->value[p->value].input = true;
    return true;
}

static bool same_shape(fth_val a, fth_val b)
{
    bool same = fth_val_dtype(a) == fth_val_dtype(b) && fth_val_axes(a) == fth_val_axes(b);
    for (int i = 0; same && i < fth_val_axes(a); i++)
        same = strcmp(fth_val_axis(a, i), fth_val_axis(b, i)) == 0;
    return same;
}

/* A step along the gradient, anything of the same shape, or a new value made from the old. */
static int next_value(rg *g, int param)
{
    const int p = g->param[param].value;
    const fth_val old = rg_val(g, p);
    const fth_dtype t = fth_val_dtype(old);
    int found[RG_VALUES], n = 0;
    for (int i = 0; i < g->n_values; i++)
        if (i != p && !g->value[i].hidden && same_shape(old, rg_val(g, i))) found[n++] = i;
    const int y = n > 0 ? found[rg_int(g, 0, n - 1)] : -1;
    if (y >= 0 && rg_chance(g, 40)) return y;
    const double step = fth_dtype_is_int(t) ? 3.0 : 0.125;
    const int from[2] = {p, y};
    fth_val v = fth_mul(y >= 0 ? rg_val(g, y) : old, fth_const(g->g, t, step));
    v = fth_sub(old, v);
    const double bound = y >= 0 ? 3.0 + g->value[y].bound : 3.0;
    return rg_add(g, v, true, bound, y >= 0 ? 2 : 1, from, "a step") ? g->n_values - 1 : -1;
}

void rg_assign_params(rg *g)
{
    for (int i = 0; i < g->n_params; i++) {
        rg_param *p = &g->param[i];
        const int other = g->n_params == 2 ? g->param[1 - i].value : -1;
        const bool swap = other >= 0 && same_shape(rg_val(g, p->value), rg_val(g, other)) &&
                          (i == 1 ? g->param[0].assigned == p->value : rg_chance(g, 25));
        p->assigned = swap ? other : next_value(g, i);
        if (p->assigned < 0) continue;
        p->assign = fth_assign(rg_val(g, p->value), rg_val(g, p->assigned));
        g->value[p->assigned].read = true;
        g->has[RG_ASSIGN] = true;
        g->has[RG_SWAP] |= swap && i == 1;
    }
}
