/* nd2_loops.c - the loops of an experiment: which axes a file has, how they nest, where they stand.
 *
 * Loops nest through ppNextLevelEx. A loop without a count is left out; of several of one kind at
 * one level (each position may have a loop of its own) the longest counts. A spectral loop is the
 * channels, which are within a frame, and adds no level.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "io/nd2.h"
#include "mem/heap.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef enum loop_type {
    TIME = 1,
    POSITIONS = 2,
    STACK = 4,
    SPECTRUM = 6,
    CUSTOM = 7,
    PERIODS = 8 /* times that are not evenly spaced: several time loops, one after the other */
} loop_type;

void fth__nd2_loops_clear(fth__nd2_loops *l)
{
    for (int64_t i = 0; i < l->n_points; i++) fth__heap_free(l->mem, l->point[i].name);
    fth__heap_free(l->mem, l->point);
    l->point = NULL;
    l->n_points = l->room = 0;
}

/* ---- time ---- */

static int64_t count_of(fth__lv pars)
{
    return fth__max_i64(fth__lv_i64(pars, "uiCount", 0), 0);
}

/* A list of flags: bytes, or a level of bools. Past its end all are true. */
typedef struct flags {
    fth__lv_item item;
    fth__lv level;
    uint64_t i;
} flags;

static flags flags_of(fth__lv level, const char *name)
{
    flags f = {0};
    if (fth__lv_find(level, name, &f.item)) f.level = fth__lv_inside(&f.item);
    return f;
}

static bool next_flag(flags *f)
{
    fth__lv_item item;
    const uint64_t i = f->i++;
    if (f->item.type == FTH__LV_BYTES) return i >= f->item.bytes || f->item.value[i] != 0;
    return !fth__lv_next(&f->level, &item) || fth__lv_number(&item, 1) != 0;
}

static int64_t sum_periods(fth__lv pars, double *period_ms)
{
    flags valid = flags_of(pars, "pPeriodValid");
    fth__lv periods = fth__lv_level(pars, "pPeriod");
    fth__lv_item item;
    int64_t sum = 0;
    while (fth__lv_next(&periods, &item)) {
        if (!next_flag(&valid)) continue;
        const fth__lv one = fth__lv_inside(&item);
        if (!fth__add_i64(sum, count_of(one), &sum)) return 0;
        if (*period_ms == 0) *period_ms = fth__lv_f64(one, "dPeriod", 0);
    }
    return sum;
}

/* ---- positions ---- */

static fth_status add_point(fth__nd2_loops *l, fth__nd2_point point, fth_err *err)
{
    const fth_status s = point.name ? fth__grow(l->mem, &l->point, &l->room, l->n_points + 1, err)
                                    : FTH_FAIL(err, FTH_E_NOMEM, "no memory for a position");
    if (s != FTH_OK) {
        fth__heap_free(l->mem, point.name);
        return s;
    }
    l->point[l->n_points++] = point;
    return FTH_OK;
}

static fth_status add_named(fth__nd2_loops *l, fth__lv at, double x, double y, fth_err *err)
{
    char *name = fth__lv_text(at, "dPosName", l->mem);
    if (name && !name[0]) {
        fth__heap_free(l->mem, name);
        name = fth__lv_text(at, "pPosName", l->mem);
    }
    return add_point(l,
                     (fth__nd2_point){name, x + fth__lv_f64(at, "dPosX", 0),
                                      y + fth__lv_f64(at, "dPosY", 0), fth__lv_f64(at, "dPosZ", 0)},
                     err);
}

/* Old files: three lists of numbers in the place of a list of points. */
static fth_status add_lists(fth__nd2_loops *l, fth__lv pars, flags *valid, double x, double y,
                            fth_err *err)
{
    fth__lv xs = fth__lv_level(pars, "dPosX"), ys = fth__lv_level(pars, "dPosY");
    fth__lv zs = fth__lv_level(pars, "dPosZ");
    fth__lv_item at[3] = {0};
    while (fth__lv_next(&xs, &at[0]) && fth__lv_next(&ys, &at[1])) {
        if (!fth__lv_next(&zs, &at[2])) at[2] = (fth__lv_item){0};
        if (!next_flag(valid)) continue;
        FTH_TRY(
            add_point(l,
                      (fth__nd2_point){fth__heap_strdup(l->mem, ""), x + fth__lv_number(&at[0], 0),
                                       y + fth__lv_number(&at[1], 0), fth__lv_number(&at[2], 0)},
                      err));
    }
    return FTH_OK;
}

static fth_status read_points(fth__nd2_loops *l, fth__lv experiment, fth__lv pars, fth_err *err)
{
    flags valid = flags_of(experiment, "pItemValid");
    fth__lv_item points, item;
    const bool relative = fth__lv_i64(pars, "bRelativeXY", 0) != 0;
    const double x = relative ? fth__lv_f64(pars, "dReferenceX", 0) : 0;
    const double y = relative ? fth__lv_f64(pars, "dReferenceY", 0) : 0;
    fth__nd2_loops_clear(l);
    l->use_z = fth__lv_i64(pars, "bUseZ", 0) != 0;
    if (!fth__lv_find(pars, "Points", &points)) return add_lists(l, pars, &valid, x, y, err);
    fth__lv list = fth__lv_inside(&points);
    while (fth__lv_next(&list, &item))
        if (next_flag(&valid)) FTH_TRY(add_named(l, fth__lv_inside(&item), x, y, err));
    return FTH_OK;
}

/* ---- planes ---- */

/* The plane where the stage stood: in the middle, or as far from one end as the loop was started
 * (types 2 and 3 count from one end, 6 and 7 from the other). */
static int64_t find_home(fth__lv pars, int64_t n, double step)
{
    const int64_t type = fth__lv_i64(pars, "iType", 0);
    const bool inverted = fth__lv_i64(pars, "bZInverted", 0) != 0;
    const double home = fth__lv_f64(pars, "dZHome", 0);
    const double low = fabs(fth__lv_f64(pars, "dZLow", 0) - home);
    const double high = fabs(fth__lv_f64(pars, "dZHigh", 0) - home);
    const bool up = type == 2 || type == 3, down = type == 6 || type == 7;
    if (n <= 1 || (!up && !down) || !(step > 0)) return n > 0 ? (n - 1) / 2 : 0;
    const double range = up != inverted ? low : high;
    const double planes = fabs(ceil((range - 0.05 * step) / step));
    return planes < (double)(n - 1) ? (int64_t)planes : n - 1;
}

static void read_stack(fth__nd2_loops *l, fth__lv pars, int64_t n)
{
    double step = fabs(fth__lv_f64(pars, "dZStep", 0));
    if (!(step > 0) && n > 1)
        step =
            fabs(fth__lv_f64(pars, "dZHigh", 0) - fth__lv_f64(pars, "dZLow", 0)) / (double)(n - 1);
    l->z_step = isfinite(step) ? step : 0;
    l->z_home = find_home(pars, n, l->z_step);
    FTH_ASSERT(l->z_home >= 0 && l->z_home < n);
}

/* ---- the nest ---- */

typedef struct walk {
    fth__nd2_loops *l;
    const char *path;
    int depth;
} walk;

/* Where a loop goes: behind those outside it, or in the place of a shorter one. NULL: nowhere. */
static fth_status place_of(const walk *w, int axis, int level, int64_t count, fth__nd2_loop **out,
                           fth_err *err)
{
    fth__nd2_loops *l = w->l;
    fth__nd2_loop *last = l->n > 0 ? &l->loop[l->n - 1] : NULL;
    *out = NULL;
    if (last && last->level >= level) {
        if (last->level == level && last->axis == axis && last->count < count) *out = last;
        return FTH_OK;
    }
    for (int i = 0; i < l->n; i++)
        if (l->loop[i].axis == axis)
            return FTH_FAIL(err, FTH_E_FILE_FEATURE,
                            "%s: the experiment has a loop over %c within another over %c", w->path,
                            "tpz"[axis], "tpz"[axis]);
    FTH_ASSERT((size_t)l->n < sizeof l->loop / sizeof l->loop[0]); /* each axis is there once */
    *out = &l->loop[l->n++];
    return FTH_OK;
}

static fth_status add_loop(const walk *w, fth__lv experiment, fth__lv pars, loop_type type,
                           int level, fth_err *err)
{
    fth__nd2_loops *l = w->l;
    double period = type == TIME ? fth__lv_f64(pars, "dPeriod", 0) : 0;
    int64_t count = type == PERIODS ? sum_periods(pars, &period) : count_of(pars);
    fth__nd2_loops points = {.mem = l->mem};
    if (type == POSITIONS) {
        const fth_status s = read_points(&points, experiment, pars, err);
        if (s == FTH_OK && points.n_points > 0) count = points.n_points;
        if (s != FTH_OK || count == 0) {
            fth__nd2_loops_clear(&points);
            return s;
        }
    }
    const int axis = type == POSITIONS ? FTH_IMAGES_P : type == STACK ? FTH_IMAGES_Z : FTH_IMAGES_T;
    fth__nd2_loop *at = NULL;
    const fth_status s = count > 0 ? place_of(w, axis, level, count, &at, err) : FTH_OK;
    if (!at) {
        fth__nd2_loops_clear(&points);
        return s;
    }
    *at = (fth__nd2_loop){axis, level, count};
    if (axis == FTH_IMAGES_T) l->period_ms = isfinite(period) && period > 0 ? period : 0;
    if (axis == FTH_IMAGES_Z) read_stack(l, pars, count);
    if (axis == FTH_IMAGES_P) {
        fth__nd2_loops_clear(l);
        l->point = points.point;
        l->n_points = points.n_points;
        l->room = points.room;
        l->use_z = points.use_z;
    }
    return FTH_OK;
}

static fth_status read_level(walk *w, fth__lv experiment, int level, fth_err *err)
{
    const int64_t type = fth__lv_i64(experiment, "eType", 0);
    fth__lv pars = fth__lv_level(experiment, "uLoopPars"), inner = pars;
    fth__lv_item item;
    if (inner.left == 1 && fth__lv_next(&inner, &item) && item.type == FTH__LV_LEVEL)
        pars = fth__lv_inside(&item); /* a list of one */
    if (type == SPECTRUM)
        level--;
    else if (type == TIME || type == POSITIONS || type == STACK || type == PERIODS)
        FTH_TRY(add_loop(w, experiment, pars, (loop_type)type, level, err));
    else if (type != 0 && count_of(pars) > 1)
        return FTH_FAIL(err, FTH_E_FILE_FEATURE,
                        "%s: the experiment has a loop of type %" PRId64 " over %" PRId64
                        " frames; loops over time (1, 8), positions (2) and z (4) are known",
                        w->path, type, count_of(pars));
    fth__lv next = fth__lv_level(experiment, "ppNextLevelEx");
    if (w->depth >= FTH__ND2_DEPTH) return FTH_OK;
    w->depth++;
    fth_status s = FTH_OK;
    while (s == FTH_OK && fth__lv_next(&next, &item))
        s = read_level(w, fth__lv_inside(&item), level + 1, err);
    w->depth--;
    return s;
}

fth_status fth__nd2_loops_read(fth__nd2_loops *l, fth_mem *mem, fth__lv experiment,
                               const char *path, fth_err *err)
{
    *l = (fth__nd2_loops){.mem = mem};
    walk w = {l, path, 0};
    const fth_status s = read_level(&w, experiment, 0, err);
    if (s != FTH_OK) fth__nd2_loops_clear(l);
    return s;
}
