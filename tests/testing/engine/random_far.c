/* random_far.c - parts of axes that are much longer than a chunk, away from their start.
 *
 * A small budget cuts such an axis into many pieces, and most of them hold nothing of the part:
 * reductions, scans and operations of the test's own see empty pieces first, last and in between.
 * Values keep to one side of zero, away from it and from one, so that no number equals what a
 * reduction starts from, and a start that leaks into a result is seen.
 */
#include "testing/engine/op_harness.h"
#include "testing/engine/random_graph.h"

enum { MOST = 131072 };

/* Integers of every size mostly. */
static fth_dtype far_dtype(rg *g)
{
    static const fth_dtype whole[] = {FTH_I32,  FTH_I64, FTH_U8,  FTH_U16, FTH_I32,
                                      FTH_BOOL, FTH_U32, FTH_I16, FTH_I8};
    static const fth_dtype rest[] = {FTH_F16, FTH_BF16, FTH_F32, FTH_F64, FTH_C64, FTH_C128};
    return rg_chance(g, 65) ? whole[rg_int(g, 0, 8)] : rest[rg_int(g, 0, 5)];
}

static void fill(rg *g, rg_data *d)
{
    const int64_t side = rg_int(g, 0, 1);
    const bool sign = t_lowest(d->dtype) < 0;
    for (int64_t i = 0; i < d->bytes / fth_dtype_size(d->dtype); i++) {
        double re = (double)rg_int(g, 5, 99), im = 0.0;
        if (!fth_dtype_is_int(d->dtype)) {
            re = 0.5 + 1.5 * t_random_f64(&g->r);
            im = 0.5 + 1.5 * t_random_f64(&g->r);
        }
        if (side && sign) re = -re;
        if (d->dtype == FTH_BOOL) re = (double)side;
        t_put(d->dtype, d->data, i, re, im);
    }
    rg_make_odd(g, d);
}

/* An input of a new axis, *axis, that is read piece by piece. -1: no room. */
static int far_input(rg *g, const char **axis)
{
    static const int64_t sizes[] = {65536, 65537, 32768, 65535};
    const fth_dtype t = far_dtype(g);
    const int64_t n = rg_chance(g, 40) ? sizes[rg_int(g, 0, 3)] : rg_int(g, 20000, 70000);
    const bool wide = rg_chance(g, 30) && rg_size(g, "b") > 0 && n * rg_size(g, "b") <= MOST;
    const bool inner = rg_chance(g, 60);
    if (!rg_room(g, 1000.0) || g->n_axes + 8 > RG_AXES || !(*axis = rg_axis(g, n))) return -1;
    char axes[48];
    snprintf(axes, sizeof axes, "%s%s%s", wide && inner ? "b " : "", *axis,
             wide && !inner ? " b" : "");
    const int64_t b = rg_size(g, "b"), size[2] = {wide && inner ? b : n, inner ? n : b};
    rg_data *d = rg_data_new(g, t, wide ? 2 : 1, size);
    if (!d) return -1;
    fill(g, d);
    const int x = rg_input_read(g, d, axes, false);
    if (x < 0) return -1;
    g->value[x].bound = fth_dtype_is_int(t) ? 99.0 : 3.0;
    g->elements -= rg_count(rg_val(g, x)); /* it is never whole: room is for what is made of it */
    return x;
}

/* ---- parts of it ---- */

static int added(rg *g, bool ok)
{
    return ok ? g->n_values - 1 : -1;
}

static int slice(rg *g, int x, const char **axis)
{
    const int64_t n = rg_size(g, *axis), from = rg_int(g, n / 8, n - 1);
    const int64_t most = n - from, few = most < 100 ? most : 100;
    const char *into = rg_axis(g, rg_chance(g, 50) ? rg_int(g, 1, few) : rg_int(g, 1, most));
    if (!into || !rg_may("slice")) return -1;
    const fth_val v = fth_slice(rg_val(g, x), *axis, from, into);
    const bool ok =
        rg_add(g, v, true, g->value[x].bound, 1, &x, "slice %s from %lld", *axis, (long long)from);
    *axis = into;
    return added(g, ok);
}

static int flip(rg *g, int x, const char *axis)
{
    return !rg_may("flip") ? x
                           : added(g, rg_add(g, fth_flip(rg_val(g, x), axis), true,
                                             g->value[x].bound, 1, &x, "flip %s", axis));
}

static int window(rg *g, int x, const char *axis)
{
    const char *tap = rg_axis(g, rg_int(g, 1, 3));
    if (!tap || !rg_may("window")) return x;
    return added(g, rg_add(g, fth_window(rg_val(g, x), axis, 0, tap, FTH_BORDER_CLAMP), true,
                           g->value[x].bound, 1, &x, "window %s", axis));
}

static int pad(rg *g, int x, const char **axis)
{
    const int64_t before = rg_int(g, 0, 3000), n = rg_size(g, *axis);
    const char *into = rg_axis(g, before + n + rg_int(g, 0, 3000));
    if (!into || !rg_may("pad") || n > 20000) return x;
    const fth_val v = fth_pad(rg_val(g, x), *axis, before, into, 1.0);
    const bool ok =
        rg_add(g, v, true, g->value[x].bound, 1, &x, "pad %s by %lld", *axis, (long long)before);
    *axis = into;
    return added(g, ok);
}

static int concat(rg *g, int x, const char **axis)
{
    const char *one = *axis, *two = *axis;
    if (!rg_may("concat")) return slice(g, x, axis);
    const int a = slice(g, x, &one), b = a < 0 ? -1 : slice(g, x, &two);
    const char *into = b < 0 ? NULL : rg_axis(g, rg_size(g, one) + rg_size(g, two));
    if (!into) return -1;
    const int from[2] = {a, b};
    const fth_val part[2] = {rg_val(g, a), rg_val(g, b)};
    const char *const name[2] = {one, two};
    *axis = into;
    return added(g, rg_add(g, fth_concat(2, part, name, into), true, g->value[x].bound, 2, from,
                           "concat %s %s", one, two));
}

/* Few elements, all behind some place. */
static int compact(rg *g, int x, const char **axis)
{
    const int64_t n = rg_size(g, *axis), from = rg_int(g, n / 4, n - 1),
                  one = rg_int(g, from, n - 1);
    rg_data *d = rg_data_new(g, FTH_BOOL, 1, &n);
    if (!d || !rg_may("compact")) return -1;
    int64_t count = 0;
    for (int64_t i = from; i < n; i++)
        count += ((uint8_t *)d->data)[i] = i == one || rg_int(g, 0, 200) == 0;
    const int mask = rg_input_read(g, d, *axis, false);
    const char *into = mask < 0 ? NULL : rg_axis(g, count);
    if (!into) return -1;
    g->elements -= n;
    const int from_both[2] = {x, mask};
    const fth_val v = fth_compact(rg_val(g, x), *axis, rg_val(g, mask), into);
    const bool ok = rg_add(g, v, true, g->value[x].bound, 2, from_both, "compact %s", *axis);
    *axis = into;
    return added(g, ok);
}

static int part_of(rg *g, int x, const char **axis)
{
    switch (rg_int(g, 0, 7)) {
    case 0: return concat(g, x, axis);
    case 1: return compact(g, x, axis);
    case 2: return (x = slice(g, x, axis)) < 0 ? -1 : pad(g, x, axis);
    case 3: return (x = slice(g, x, axis)) < 0 ? -1 : flip(g, x, *axis);
    case 4: return (x = slice(g, x, axis)) < 0 ? -1 : window(g, x, *axis);
    default: return slice(g, x, axis);
    }
}

/* ---- what is made of a part ---- */

static bool reduced(rg *g, int x, const char *axis)
{
    static const struct {
        const char *name;
        fth_red red;
        int classes;
    } rows[] = {{"rmin", FTH_RED_MIN, RG_INT | RG_REAL},
                {"rmax", FTH_RED_MAX, RG_INT | RG_REAL},
                {"sum", FTH_RED_SUM, RG_ANY_REAL},
                {"prod", FTH_RED_PROD, RG_INT | RG_FLOAT},
                {"any", FTH_RED_ANY, RG_BOOL},
                {"all", FTH_RED_ALL, RG_BOOL},
                {"logsumexp", FTH_RED_LOGSUMEXP, RG_REAL}};
    const int class = rg_class(fth_val_dtype(rg_val(g, x)));
    for (int tries = 0; tries < 20; tries++) {
        const int64_t k = rg_int(g, 0, 6);
        if ((rows[k].classes & class) && rg_may(rows[k].name))
            return rg_reduce_over(g, rows[k].red, x, axis);
    }
    return false;
}

static bool used(rg *g, int x, const char *axis)
{
    const fth_val v = rg_val(g, x);
    const double bound = g->value[x].bound;
    const int class = rg_class(fth_val_dtype(v));
    const bool ordered = (class & (RG_INT | RG_REAL)) != 0;
    const int64_t kind = rg_int(g, 0, 9);
    if (kind == 0 && ordered && rg_may("argmin"))
        return rg_add(g, fth_arg_(FTH_HERE, rg_chance(g, 50), v, axis), true, (double)MOST, 1, &x,
                      "arg %s", axis);
    if (kind == 1 && ordered && rg_may("scan"))
        return rg_add(g,
                      fth_scan(rg_chance(g, 50) ? FTH_RED_MIN : FTH_RED_MAX, v, axis, false, false),
                      true, bound, 1, &x, "scan %s", axis);
    if (kind == 2 && class != RG_COMPLEX && rg_may("count"))
        return rg_add(g, fth_count(v, axis), true, (double)MOST, 1, &x, "count %s", axis);
    if (kind == 3 && class == RG_REAL && rg_may("variance"))
        return rg_add(g, fth_variance(v, axis), false, 4.0, 1, &x, "variance %s", axis);
    if (kind == 4 && class == RG_REAL && rg_may("own sum")) return rg_own_sum(g, x, axis);
    const char *bin = kind == 5 && ordered && rg_may("histogram") ? rg_axis(g, 7) : NULL;
    if (bin)
        return rg_add(g, fth_histogram(v, axis, bin, -100.0, 100.0), true, (double)MOST, 1, &x,
                      "histogram %s", axis);
    return reduced(g, x, axis);
}

bool rg_far(rg *g)
{
    const char *axis;
    int x = far_input(g, &axis);
    const char *const whole = axis;
    if (x < 0 || (x = part_of(g, x, &axis)) < 0) return false;
    const fth_dtype t = fth_val_dtype(rg_val(g, x));
    if (rg_chance(g, 30) && t_lowest(t) < 0 && rg_may("neg") &&
        !rg_add(g, fth_neg(rg_val(g, x)), true, g->value[x].bound, 1, &x, "neg"))
        return false;
    x = g->n_values - 1;
    bool any = false;
    for (int64_t n = rg_int(g, 1, 3); n > 0; n--) any |= used(g, x, axis);
    g->has[RG_FAR] |= any;
    g->far = whole;
    return any;
}
