/* loops.h - the loops behind raster.h, once per precision and instruction set. */
#ifndef SPLAT_RASTER_LOOPS_H
#define SPLAT_RASTER_LOOPS_H

#include "raster.h"

#include <inttypes.h>

enum { GS_BLOCKS = 32, GS_SUMS = 9, GS_RAY_SUMS = 18, GS_TILE_MOST = 32 };

/* Inputs of projections: the parts, the view; backward also splats and their cotangents. shN comes
 * last where there is one. */
enum { GS_IN_MEANS, GS_IN_SH0, GS_IN_SCALING, GS_IN_ROTATION, GS_IN_OPACITY, GS_IN_PARTS };
enum {
    GS_PROJECT_VIEW = GS_IN_PARTS,
    GS_PROJECT_INPUTS,
    GS_BACK_SPLATS = GS_PROJECT_INPUTS,
    GS_BACK_BAR,
    GS_BACK_INPUTS
};
/* Inputs of blends: backward also what forward made, and the cotangents of both, that of alpha last
 * and not always. Where the rule says so, lists of tiles come behind all of them. */
enum {
    GS_BLEND_SPLATS,
    GS_BLEND_ORDER,
    GS_BLEND_VIEW,
    GS_BLEND_INPUTS,
    GS_BLEND_MADE_IMAGE = GS_BLEND_INPUTS,
    GS_BLEND_MADE_ALPHA,
    GS_BLEND_IMAGE,
    GS_BLEND_ALPHA
};

static inline bool gs_is_listed(const fth_node *node)
{
    return ((const gs_raster *)node->attr)->listed != 0;
}
/* Inputs of a blend without lists. */
static inline int gs_blend_inputs(const fth_node *node)
{
    return node->n_in - (gs_is_listed(node) ? 1 : 0);
}

/* The value of gs_lists: where its parts begin, in numbers of 32 bits. */
typedef struct gs_list_layout {
    int64_t tiles, room;                     /* of the image */
    int64_t first, start, owner, item, rank; /* counts come before them */
    int64_t numbers;
} gs_list_layout;
static inline int64_t gs_list_part(int64_t *at, int64_t numbers)
{
    const int64_t begin = *at;
    *at += (numbers + 63) / 64 * 64;
    return begin;
}
static inline gs_list_layout gs_list_layout_of(const gs_raster *rule, int64_t n)
{
    const int64_t rows = (rule->height + rule->tile - 1) / rule->tile;
    gs_list_layout l = {0};
    l.tiles = (rule->width + rule->tile - 1) / rule->tile * rows;
    l.room = rule->room > INT32_MAX / (rows ? rows : 1) ? INT32_MAX : rule->room * rows;
    l.numbers = 64;
    l.first = gs_list_part(&l.numbers, n);
    l.start = gs_list_part(&l.numbers, l.tiles + 1);
    l.owner = gs_list_part(&l.numbers, l.room);
    l.item = gs_list_part(&l.numbers, l.room);
    l.rank = gs_list_part(&l.numbers, n);
    return l;
}

typedef struct gs_project_work {
    const gs_raster *rule;
    const void *view;
    const void *in[GS_IN_PARTS], *rest; /* of the first row; rest NULL: degree 0 */
    int64_t step[GS_IN_PARTS], rest_step, rest_k;
    int degree; /* of the model */
    int64_t n;
    const void *splats, *bar; /* backward */
    int64_t splats_step, bar_step;
    void *out[GS_IN_PARTS], *out_rest; /* forward: out[0], rows of GS_SPLAT */
    int64_t out_step[GS_IN_PARTS], out_rest_step, out_rest_k;
} gs_project_work;

/* Rows of tiles of an image, all of them or some. */
typedef struct gs_blend_work {
    const gs_raster *rule;
    const void *splats, *view;
    const int32_t *order;
    int64_t splats_step, n;
    int64_t row, rows; /* of tiles */
    int64_t pixels;    /* rows of pixels from the first of these tiles on */
    /* forward: image [i j c], alpha [i j]; backward: their cotangents, alpha may be NULL */
    void *image, *alpha;
    int64_t image_i, image_j, alpha_i;
    /* backward: what forward made */
    const void *made_image, *made_alpha;
    int64_t made_i, made_j, made_alpha_i;
    void *bar; /* backward: rows of GS_SPLAT, added to */
    int64_t bar_step;
    fth_team *team;
    void *scratch;
    int64_t need; /* out: what a row of tiles needs, on average over these */
} gs_blend_work;

typedef struct gs_loops {
    void (*project)(const gs_project_work *w);
    void (*project_back)(const gs_project_work *w);
    uint64_t (*scratch)(const gs_raster *rule, int64_t rows, bool back);
    bool (*blend)(gs_blend_work *w); /* false: too little room */
    bool (*blend_back)(gs_blend_work *w);
} gs_loops;
/* The error of a blend that needs more room for a row of tiles than its rule has. */
static inline fth_status gs_too_little(const fth_node *node, int64_t need, fth_err *err)
{
    const gs_raster *a = (const gs_raster *)node->attr;
    if (a->need && need > *a->need) *a->need = need;
    FTH_FAIL(err, FTH_E_STATE,
             "%s: a row of tiles has room for %" PRId64 " Gaussians, %" PRId64 " are needed",
             node->op->name, a->room, need);
    fth_err_hint(err, "plan again with more room");
    return FTH_E_STATE;
}

FTH_ISA_DECLARE(const gs_loops, gs_loops_f32);
FTH_ISA_DECLARE(const gs_loops, gs_loops_f64);
FTH_ISA_DECLARE(const gs_loops, gs_ray_loops_f32);
FTH_ISA_DECLARE(const gs_loops, gs_ray_loops_f64);

/* Of an operation whose attribute is a gs_raster. */
static inline const gs_loops *gs_loops_of(const fth_node *node)
{
    const bool single = node->in[0].dtype == FTH_F32;
    if (((const gs_raster *)node->attr)->rays)
        return single ? FTH_ISA_BEST(gs_ray_loops_f32) : FTH_ISA_BEST(gs_ray_loops_f64);
    return single ? FTH_ISA_BEST(gs_loops_f32) : FTH_ISA_BEST(gs_loops_f64);
}

#endif
