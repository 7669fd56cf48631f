/* filter.c - builders of filters, and of what goes around the ends of an axis, from other
 * operations.
 *
 * None of them has a kernel. A window around the ends is one of a longer axis: the value between
 * copies of its ends. That streams, because parts of an axis do, and has a gradient for the same
 * reason. Programs know such a concatenation (plan/look.h), and read the value instead of it.
 */
#include "ops/build.h"
#include "ops/window.h"

#include <stdio.h>
#include <string.h>

/* An axis of `size` elements for a part of `axis` that v does not have yet, nor another part
 * (`other`, or NULL): each follows a streamed axis at its own place. false: recorded. */
static bool part_axis(fth_site site, fth_val v, const char *axis, int64_t size, const char *other,
                      char *name)
{
    for (int k = 0; k < 26; k++) {
        snprintf(name, FTH__NAME, "%.8s_part%lld%.1s", axis, (long long)size,
                 &"abcdefghijklmnopqrstuvwxyz"[k]);
        const int64_t known = fth_axis_size(v.graph, name);
        const bool used =
            known >= 0 && fth_desc_find(fth__val_desc(v), fth_axis_find(v.graph, name)) >= 0;
        const bool apart = !other || strcmp(other, name) != 0;
        if (!used && apart && (known < 0 || known == size))
            return fth_axis_(v.graph, site, name, size);
    }
    fth_poison_(v.graph, site, FTH_E_AXIS_NAME, "no name is left for a part of axis '%s'", axis);
    return false;
}

/* [from, from + size) of an axis under the name that part_axis finds. */
static fth_val part_of(fth_site site, fth_val v, const char *axis, int64_t from, int64_t size,
                       const char *other, char *name)
{
    if (!part_axis(site, v, axis, size, other, name)) return fth__poison(v);
    return fth_slice_(site, v, axis, from, name);
}

/* The last `lo` elements of an axis, all of it, and its first `hi`. */
static fth_val surround(fth_site site, fth_val v, const char *axis, int64_t lo, int64_t hi,
                        char *into)
{
    char name[2][FTH__NAME];
    fth_val part[3];
    const char *of[3];
    int n = 0;
    const int64_t size = fth_axis_size(v.graph, axis);
    if (lo > 0) {
        part[n] = part_of(site, v, axis, size - lo, lo, NULL, name[0]);
        of[n++] = name[0];
    }
    part[n] = v;
    of[n++] = axis;
    if (hi > 0) {
        part[n] = part_of(site, v, axis, 0, hi, lo > 0 ? name[0] : NULL, name[1]);
        of[n++] = name[1];
    }
    for (int i = 0; i < n; i++)
        if (!fth_val_ok(part[i])) return fth__poison(v);
    if (!part_axis(site, v, axis, size + lo + hi, NULL, into)) return fth__poison(v);
    return fth_concat_(site, n, part, of, into);
}

static fth_val window_around(fth_site site, fth_val v, const char *axis, int64_t lo,
                             const char *tap)
{
    fth_axis_id id;
    char into[FTH__NAME];
    if (!fth__build_axis(v, site, "window", axis, &id)) return fth__poison(v);
    if (!fth__build_axis(v, site, "window", tap, &id)) return fth__poison(v);
    const int64_t size = fth_axis_size(v.graph, axis), hi = fth_axis_size(v.graph, tap) - 1 - lo;
    const bool plain = size == 0 || lo < 0 || hi < 0 || /* refused with both shapes, or empty */
                       fth_desc_find(fth__val_desc(v), fth_axis_find(v.graph, axis)) < 0;
    if (plain) return fth__window(site, v, axis, lo, tap, FTH_BORDER_ZERO);
    if (lo > size || hi > size)
        return fth_poison_(
            v.graph, site, FTH_E_GRAPH_ATTR,
            "window: %lld elements before and %lld behind wrap more than once around "
            "the %lld of axis '%s'; make it longer with concat first",
            (long long)lo, (long long)hi, (long long)size, axis);
    const fth_val longer = surround(site, v, axis, lo, hi, into);
    if (!fth_val_ok(longer)) return longer;
    return fth_slice_(site, fth__window(site, longer, into, lo, tap, FTH_BORDER_ZERO), into, lo,
                      axis);
}

fth_val fth_window_(fth_site site, fth_val v, const char *axis, int64_t lo, const char *tap,
                    fth_border border)
{
    if (border == FTH_BORDER_WRAP && fth_val_ok(v)) return window_around(site, v, axis, lo, tap);
    return fth__window(site, v, axis, lo, tap, border);
}

fth_val fth_correlate_(fth_site site, fth_val v, const char *axes, fth_val weights,
                       const char *taps, fth_border border)
{
    fth_axis_id axis[FTH_MAX_AXES], tap[FTH_MAX_AXES];
    int n_axes, n_taps;
    if (!fth__build_axes(v, site, axes, &n_axes, axis)) return fth__poison(v);
    if (!fth__build_axes(v, site, taps, &n_taps, tap)) return fth__poison(v);
    if (n_axes != n_taps || n_axes == 0)
        return fth_poison_(v.graph, site, FTH_E_GRAPH_ATTR,
                           "correlate: axes '%s' and taps '%s' do not go in pairs", axes, taps);
    for (int i = 0; i < n_axes; i++)
        v = fth_window_(site, v, fth_axis_name(v.graph, axis[i]), fth__size_of(v.graph, tap[i]) / 2,
                        fth_axis_name(v.graph, tap[i]), border);
    return fth_reduce_(site, FTH_RED_SUM, fth__map2(site, FTH_EW_MUL, v, weights), taps);
}

fth_val fth_roll_(fth_site site, fth_val v, const char *axis, int64_t by)
{
    fth_axis_id id;
    char name[2][FTH__NAME];
    if (!fth__build_axis(v, site, "roll", axis, &id)) return fth__poison(v);
    const int64_t size = fth__size_of(v.graph, id);
    const int64_t first = size > 0 ? (by % size + size) % size : 0;
    if (first == 0) return fth_slice_(site, v, axis, 0, axis);
    const fth_val last = part_of(site, v, axis, size - first, first, NULL, name[0]),
                  part[2] = {last, part_of(site, v, axis, 0, size - first, name[0], name[1])};
    const char *const of[2] = {name[0], name[1]};
    if (!fth_val_ok(part[0]) || !fth_val_ok(part[1])) return fth__poison(v);
    return fth_concat_(site, 2, part, of, axis);
}

fth_val fth_column_(fth_site site, fth_val v, const char *axis, int64_t at)
{
    fth_axis_id id;
    if (!fth__build_axis(v, site, "column", axis, &id)) return fth__poison(v);
    const int64_t size = fth__size_of(v.graph, id);
    if (at < 0 || at >= size)
        return fth_poison_(v.graph, site, FTH_E_GRAPH_ATTR,
                           "column: there is no element %lld of the %lld along axis '%s'",
                           (long long)at, (long long)size, axis);
    return fth_gather_(site, v, axis, fth_const_i64_(v.graph, site, FTH_I64, at));
}
