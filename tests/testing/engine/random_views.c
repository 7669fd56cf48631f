/* random_views.c - views of views of a value, and what programs make of them without copies.
 *
 * Windows, slices, pads, flips, repeats and rows that an index chooses are read inside the loops of
 * their consumers where index arithmetic allows it, and indices and random numbers are made there:
 * chains of them, with every border, summed over taps and over other axes, some read by others as
 * well.
 */
#include "testing/engine/op_harness.h"
#include "testing/engine/random_graph.h"

enum { MOST_FACTOR = 4 };

static int added(rg *g, bool ok)
{
    return ok ? g->n_values - 1 : -1;
}

static const char *any_axis(rg *g, int x)
{
    return rg_axis_of(g, rg_val(g, x));
}

static int window(rg *g, int x, const char *axis)
{
    static const char *const names[] = {"zero", "clamp", "reflect", "mirror", "wrap"};
    const int64_t taps = rg_chance(g, 10) ? rg_int(g, 60, 70) : rg_int(g, 1, 6);
    const int64_t lo = rg_int(g, 0, taps - 1), n = rg_size(g, axis);
    fth_border border = (fth_border)rg_int(g, FTH_BORDER_ZERO, FTH_BORDER_WRAP);
    if (border == FTH_BORDER_WRAP && (lo > n || taps - 1 - lo > n || n == 0))
        border = FTH_BORDER_MIRROR;
    if (fth_val_axes(rg_val(g, x)) >= FTH_MAX_AXES - 2 || !rg_may("window")) return x;
    if (!rg_room(g, (double)rg_count(rg_val(g, x)) * (double)taps)) return x;
    const char *tap = rg_axis(g, taps);
    if (!tap) return x;
    const fth_val v = fth_window(rg_val(g, x), axis, lo, tap, border);
    return added(g, rg_add(g, v, true, g->value[x].bound, 1, &x, "window %s %s from %lld, %s", axis,
                           tap, (long long)-lo, names[border]));
}

static int slice(rg *g, int x, const char *axis)
{
    const int64_t n = rg_size(g, axis), from = n > 0 ? rg_int(g, 0, n - 1) : 0,
                  step = rg_chance(g, 60) ? 1 : rg_int(g, 2, 4),
                  most = n > 0 ? (n - 1 - from) / step + 1 : 0;
    const char *into =
        rg_may("slice") ? rg_axis(g, rg_chance(g, 60) ? most : rg_int(g, 0, most)) : NULL;
    if (!into) return x;
    const fth_val v = fth_slice_step(rg_val(g, x), axis, from, step, into);
    return added(g, rg_add(g, v, true, g->value[x].bound, 1, &x, "slice %s from %lld by %lld", axis,
                           (long long)from, (long long)step));
}

static int pad(rg *g, int x, const char *axis)
{
    const int64_t before = rg_int(g, 0, 5), n = before + rg_size(g, axis) + rg_int(g, 0, 5);
    const double value = (double)rg_int(g, 0, 1);
    if (!rg_may("pad") || !rg_room(g, (double)rg_count(rg_val(g, x)) * 2 + 100)) return x;
    const char *into = rg_axis(g, n);
    if (!into) return x;
    const double bound = g->value[x].bound > 1.0 ? g->value[x].bound : 1.0;
    return added(g, rg_add(g, fth_pad(rg_val(g, x), axis, before, into, value), true, bound, 1, &x,
                           "pad %s by %lld with %g", axis, (long long)before, value));
}

static int upsample(rg *g, int x, const char *axis)
{
    const int64_t factor = rg_int(g, 1, MOST_FACTOR);
    if (!rg_may("upsample") || !rg_room(g, (double)(rg_count(rg_val(g, x)) * factor))) return x;
    const char *into = rg_axis(g, rg_size(g, axis) * factor);
    if (!into) return x;
    return added(g,
                 rg_add(g, fth_upsample(rg_val(g, x), axis, factor, into), true, g->value[x].bound,
                        1, &x, "each of %s %lld times", axis, (long long)factor));
}

static int flip(rg *g, int x, const char *axis)
{
    if (!rg_may("flip")) return x;
    return added(g, rg_add(g, fth_flip(rg_val(g, x), axis), true, g->value[x].bound, 1, &x,
                           "flip %s", axis));
}

static int roll(rg *g, int x, const char *axis)
{
    const int64_t n = rg_size(g, axis), by = rg_chance(g, 50) ? rg_int(g, -9, 9) : rg_int(g, 0, n);
    if (!rg_may("concat") || !rg_may("slice")) return x;
    return added(g, rg_add(g, fth_roll(rg_val(g, x), axis, by), true, g->value[x].bound, 1, &x,
                           "roll %s by %lld", axis, (long long)by));
}

/* Parts of an axis that follow each other around it, or nearly: once or more, in one value. */
static int around(rg *g, int x, const char *axis)
{
    const int64_t n = rg_size(g, axis);
    const int parts = (int)rg_int(g, 1, 4);
    fth_val part[4];
    const char *of[4];
    int64_t from = n > 0 ? rg_int(g, 0, n - 1) : 0, total = 0;
    if (n == 0 || !rg_may("concat") || !rg_may("slice") || g->n_axes + 6 > RG_AXES) return x;
    for (int i = 0; i < parts; i++) {
        const int64_t size = rg_chance(g, 70) ? n - from : rg_int(g, 0, n - from);
        if (!rg_room(g, (double)rg_count(rg_val(g, x)) * (double)(i + 2))) return x;
        if (!(of[i] = rg_axis(g, size))) return x;
        part[i] = fth_slice(rg_val(g, x), axis, from, of[i]);
        total += size;
        from = (from + size) % n;
        if (rg_chance(g, 10)) from = rg_int(g, 0, n - 1);
    }
    const char *into = rg_axis(g, total);
    if (!into) return x;
    return added(g, rg_add(g, fth_concat(parts, part, of, into), true, g->value[x].bound, 1, &x,
                           "%d parts around %s", parts, axis));
}

/* Rows by an index along new axes, along others of the value (one row for each of their elements),
 * both, or a permutation. */
static int rows(rg *g, int x, const char *axis)
{
    const fth_val v = rg_val(g, x);
    const int64_t n = rg_size(g, axis);
    char axes[3 * 16 + 4] = "";
    double count = (double)rg_count(v) / (double)(n + (n == 0));
    const char *other = rg_chance(g, 50) ? rg_axis_of(g, v) : NULL;
    if (n == 0 || !rg_may("gather") || fth_val_axes(v) >= FTH_MAX_AXES - 2) return x;
    if (rg_chance(g, 10)) {
        snprintf(axes, sizeof axes, "%s", axis);
        count *= (double)n;
        other = NULL;
    } else if (!other || strcmp(other, axis) == 0 || rg_chance(g, 40)) {
        const char *own = rg_axis(g, rg_int(g, 0, 60));
        if (!own) return x;
        snprintf(axes, sizeof axes, "%s", own);
        count *= (double)rg_size(g, own);
    }
    if (other && strcmp(other, axis) != 0) {
        char before[sizeof axes];
        memcpy(before, axes, sizeof axes);
        const bool first = rg_chance(g, 50);
        snprintf(axes, sizeof axes, "%.16s %.16s", first ? other : before, first ? before : other);
    }
    if (!rg_room(g, 2.0 * count)) return x;
    const int index = rg_index(g, axes, n);
    if (index < 0) return x;
    const int from[2] = {x, index};
    return added(g, rg_add(g, fth_gather(v, axis, rg_val(g, index)), true, g->value[x].bound, 2,
                           from, "rows of %s by [%s]", axis, axes));
}

static int view(rg *g, int x)
{
    static int (*const views[])(rg *, int, const char *) = {
        window, window, slice, slice, pad, upsample, flip, roll, roll, rows, rows, around};
    enum { VIEWS = (int)(sizeof views / sizeof views[0]) };
    const char *axis = any_axis(g, x);
    return axis && rg_room(g, 1000.0) ? views[rg_int(g, 0, VIEWS - 1)](g, x, axis) : x;
}

/* A value that is made where it is read. */
static int source(rg *g)
{
    static const char *const axes[] = {"s", "a", "t"};
    if (rg_chance(g, 15) && rg_may("poisson")) return added(g, rg_poisson(g));
    if (rg_chance(g, 50)) return added(g, rg_chance(g, 50) ? rg_uniform(g) : rg_normal(g));
    const char *axis = axes[rg_int(g, 0, 2)];
    if (!rg_may("index") || !rg_room(g, (double)rg_size(g, axis))) return -1;
    return added(g, rg_add(g, fth_index(g->g, axis), true, (double)rg_size(g, axis), 0, NULL,
                           "index of %s", axis));
}

/* Something that is defined for the dtype, exact, and different where an element was misplaced. */
static int computed(rg *g, int x)
{
    const fth_val v = rg_val(g, x);
    const char *axis = any_axis(g, x);
    const int class = rg_class(fth_val_dtype(v));
    const double bound = g->value[x].bound;
    if (!axis || !rg_room(g, 2.0 * (double)rg_count(v))) return x;
    const fth_val w = rg_chance(g, 50) && rg_may("flip") ? fth_flip(v, axis) : v;
    if (class == RG_BOOL) return added(g, rg_add(g, fth_xor(v, w), true, bound, 1, &x, "xor"));
    if (class == RG_COMPLEX)
        return added(g, rg_add(g, fth_add(v, w), false, 2.0 * bound, 1, &x, "add its flip"));
    return added(g, rg_add(g, fth_min(v, w), true, bound, 1, &x, "min with its flip"));
}

static bool reduced(rg *g, int x)
{
    const int class = rg_class(fth_val_dtype(rg_val(g, x)));
    const char *axis = any_axis(g, x);
    if (!axis) return true;
    if (class == RG_BOOL)
        return rg_reduce_over(g, rg_chance(g, 50) ? FTH_RED_ANY : FTH_RED_SUM, x, axis);
    if (rg_size(g, axis) > 0 && (class & (RG_INT | RG_REAL)) && rg_chance(g, 40))
        return rg_reduce_over(g, rg_chance(g, 50) ? FTH_RED_MAX : FTH_RED_MIN, x, axis);
    return rg_reduce_over(g, FTH_RED_SUM, x, axis);
}

bool rg_views(rg *g)
{
    const char *axis;
    int x = rg_chance(g, 25) ? source(g) : rg_with_axis(g, RG_ANY_REAL, rg_chance(g, 80), &axis);
    if (x < 0 || rg_count(rg_val(g, x)) > 20000) return false;
    const int before = g->n_values;
    for (int64_t n = rg_int(g, 1, 3); n > 0 && x >= 0; n--) x = view(g, x);
    if (x < 0 || g->n_values == before) return false;
    if (rg_chance(g, 75)) x = computed(g, x);
    if (x >= 0 && rg_chance(g, 60) && !reduced(g, x)) return false;
    if (x >= 0 && rg_chance(g, 30) && !reduced(g, g->n_values - 1)) return false;
    g->has[RG_VIEWS] |= x >= 0;
    return x >= 0;
}
