/* cwt.c - fusion by complex wavelets (Forster, Van De Ville, Berent, Sage, Unser 2004), as a graph
 * of operations level by level.
 *
 * Planes are streamed twice: once to select the plane of the largest coefficient, and after the
 * vote to gather coefficients; a third time to find the stack values nearest to the image.
 */
#include "fuse.h"
#include "levels.h"

#include "../ops/cwt.h"
#include "../ops/nearest.h"

enum { MAX_LEVELS = 10 };

/* |c|^2 below these counts as 0: of integers, and of floats against the largest of plane 0. */
static const double floor_of_integers = 0.1 * 0.1, floor_of_floats = 1e-6 * 1e-6;

typedef struct wavelets {
    fth_graph *g;
    fth_val stacks, kept, floor, first;
    const fo_fusion *how;
    int levels;
    fo_cwt_attr at[MAX_LEVELS + 1]; /* of each level; the last one is the corner */
} wavelets;

static int64_t up_to(int64_t n, int64_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

/* A plane of the size of its padding has as many levels as leave two rows and columns. */
static int levels_of(int64_t rows, int64_t cols, int asked)
{
    int n = 0;
    for (int64_t least = rows < cols ? rows : cols; least >= 2 && n < asked && n < MAX_LEVELS;
         least /= 2)
        n++;
    return n;
}

static void shapes(wavelets *w)
{
    const int64_t height = fth_val_size(w->stacks, 2), width = fth_val_size(w->stacks, 3);
    const int64_t rows = height + 2 * w->how->pad, cols = width + 2 * w->how->pad;
    w->levels = levels_of(rows, cols, w->how->levels);
    const int64_t unit = (int64_t)1 << w->levels;
    const fth_axis_id part = fo_level_axis(w->g, "fo_cwt_part", 0, 2);
    const fth_axis_id bands = fo_level_axis(w->g, "fo_cwt_band", 0, FO_CWT_BANDS);
    const fth_axis_id one = fo_level_axis(w->g, "fo_cwt_corner", 0, 1);
    for (int i = 0; i <= w->levels; i++) {
        const bool corner = i == w->levels;
        const int64_t r = up_to(rows, unit) >> i, c = up_to(cols, unit) >> i;
        const int below = corner ? i : i + 1; /* the level whose axes the coefficients have */
        w->at[i] =
            (fo_cwt_attr){.rows = r,
                          .cols = c,
                          .pad = i == 0 ? w->how->pad : 0,
                          .height = height,
                          .width = width,
                          .part = part,
                          .band = corner ? one : bands,
                          .y = fo_level_axis(w->g, "fo_cwt_y", below, up_to(rows, unit) >> below),
                          .x = fo_level_axis(w->g, "fo_cwt_x", below, up_to(cols, unit) >> below),
                          .corner = corner};
    }
}

static fth_val apply(const wavelets *w, const fth_op *op, int level, int n_in, const fth_val *in)
{
    return fth_custom(w->g, op, n_in, in, &w->at[level], sizeof w->at[level]);
}

static fth_val low(const wavelets *w, fth_val fine, int level)
{
    return apply(w, &fo_cwt_low_op, level, 1, &fine);
}

/* Planes of the coefficients of a level (or of the corner), after the vote; then theirs. */
static fth_val coefficients(const wavelets *w, fth_val fine, int level)
{
    const fo_cwt_vote_attr vote = {level == w->levels ? 0 : w->how->consistency};
    const fth_val plane =
        apply(w, &fo_cwt_select_op, level, 3, ((fth_val[]){fine, w->kept, w->floor}));
    const fth_val voted =
        fth_custom(w->g, &fo_cwt_vote_op, 2, ((fth_val[]){plane, w->first}), &vote, sizeof vote);
    return apply(w, &fo_cwt_pick_op, level, 2, ((fth_val[]){fine, voted}));
}

/* 0.01, or so much of the largest |c|^2 of plane 0 of each stack. */
static fth_val floor_of(const wavelets *w)
{
    const fth_val zero = fth_cast(fth_mul(w->first, fth_const_i64(w->g, FTH_I64, 0)), FTH_F32);
    if (fth_val_dtype(w->stacks) != FTH_F32)
        return fth_add(zero, fth_const(w->g, FTH_F32, floor_of_integers));
    (void)fo_level_axis(w->g, "fo_cwt_plane", 0, 1);
    fth_val level = fth_slice(w->stacks, "z", 0, "fo_cwt_plane0"), most = zero;
    for (int i = 0; i <= w->levels; i++) {
        most = fth_max(most, apply(w, &fo_cwt_peak_op, i, 1, &level));
        if (i < w->levels) level = low(w, level, i);
    }
    return fth_mul(most, fth_const(w->g, FTH_F32, floor_of_floats));
}

static fth_val build(const wavelets *w, int level, fth_val corner, fth_val details)
{
    fo_cwt_attr attr = w->at[level];
    attr.last = level == 0;
    attr.y = level == 0 ? fth_axis_find(w->g, "y") : w->at[level - 1].y;
    attr.x = level == 0 ? fth_axis_find(w->g, "x") : w->at[level - 1].x;
    attr.band = -1;
    return fth_custom(w->g, &fo_cwt_build_op, 2, ((fth_val[]){corner, details}), &attr,
                      sizeof attr);
}

static fth_val image_of(wavelets *w)
{
    fth_val level[MAX_LEVELS + 1] = {w->stacks};
    shapes(w);
    if (w->levels == 0) return fo_level_mean(w->stacks, w->kept);
    w->floor = floor_of(w);
    for (int i = 0; i < w->levels; i++) level[i + 1] = low(w, level[i], i);
    fth_val image = w->how->base == FO_BASE_MEAN ? fo_level_mean(level[w->levels], w->kept)
                                                 : coefficients(w, level[w->levels], w->levels);
    for (int i = w->levels - 1; i >= 0; i--)
        image = build(w, i, image, coefficients(w, level[i], i));
    return fth_label(image, "cwt");
}

fo_picked fo_cwt(fth_graph *g, fth_val stacks, fth_val kept, const fo_fusion *how)
{
    if (!fth_val_ok(stacks) || !fth_val_ok(kept)) return (fo_picked){.value = {stacks.graph, 0}};
    wavelets w = {.g = g, .stacks = stacks, .kept = kept, .how = how};
    w.first = fth_argmax(fth_ne(kept, fth_const_i64(g, FTH_U8, 0)), "z");
    const bool fuse = fth_val_size(stacks, 1) > 1;
    const fth_val image = fuse ? image_of(&w) : fth_cast(fth_rmax(stacks, "z"), FTH_F32);
    const fth_val measured =
        fth_custom(g, &fo_nearest_op, 3, ((fth_val[]){stacks, image, kept}), NULL, 0);
    return (fo_picked){.value = how->no_reassign ? image : measured, .index = fth_out(measured, 1)};
}
