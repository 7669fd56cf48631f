/* place.c - see place.h.
 *
 * An edge is an outlier when its residual is above 3.5 px and the largest of all; one at a time is
 * left out, as long as the tiles stay connected, and the rest is solved again.
 */
#include "place.h"

#include "../linear/solve.h"

#include <math.h>
#include <string.h>

#define OUTLIER_PX 3.5

const char *const fo_place_source_names[FO_PLACE_SOURCES] = {"none", "aligned", "model", "master"};

/* ---- groups of connected tiles ---- */

static int root_of(const int *parent, int i)
{
    while (parent[i] != i) i = parent[i];
    return i;
}

static void connect(int *parent, int n, const fo_edge *edge, int n_edges, int without)
{
    for (int i = 0; i < n; i++) parent[i] = i;
    for (int e = 0; e < n_edges; e++) {
        if (!edge[e].used || e == without) continue;
        const int a = root_of(parent, edge[e].from), b = root_of(parent, edge[e].to);
        parent[a > b ? a : b] = a > b ? b : a;
    }
}

/* The largest group, the first of several: its root. */
static int largest_group(const int *parent, int n, int *count)
{
    int best = 0;
    memset(count, 0, (size_t)n * sizeof *count);
    for (int i = 0; i < n; i++) count[root_of(parent, i)]++;
    for (int i = 1; i < n; i++)
        if (count[i] > count[best]) best = i;
    return best;
}

/* ---- least squares ---- */

typedef struct work {
    int *parent, *count, *column; /* [n]; column: of a tile in the system, -1: not in it */
    double *a, *b;                /* [n * n], [n * 2] */
} work;

/* Every tile of the group but its root, whose place is 0. */
static bool solve_group(fo_tile_place *place, int n, const fo_edge *edge, int n_edges, int root,
                        work *w)
{
    int m = 0;
    connect(w->parent, n, edge, n_edges, -1);
    for (int i = 0; i < n; i++)
        w->column[i] = i != root && root_of(w->parent, i) == root ? m++ : -1;
    memset(w->a, 0, (size_t)m * (size_t)m * sizeof *w->a);
    memset(w->b, 0, (size_t)m * 2 * sizeof *w->b);
    for (int e = 0; e < n_edges; e++) {
        if (!edge[e].used || root_of(w->parent, edge[e].from) != root) continue;
        const int i = w->column[edge[e].from], j = w->column[edge[e].to];
        const double k = edge[e].score;
        if (i >= 0) {
            w->a[i * m + i] += k;
            w->b[2 * i] -= k * edge[e].y;
            w->b[2 * i + 1] -= k * edge[e].x;
        }
        if (j >= 0) {
            w->a[j * m + j] += k;
            w->b[2 * j] += k * edge[e].y;
            w->b[2 * j + 1] += k * edge[e].x;
        }
        if (i >= 0 && j >= 0) {
            w->a[i * m + j] -= k;
            w->a[j * m + i] -= k;
        }
    }
    if (!fo_solve(w->a, w->b, m, 2)) return false;
    for (int i = 0; i < n; i++) {
        const int c = w->column[i];
        if (c < 0 && i != root) continue;
        place[i] = (fo_tile_place){.y = c < 0 ? 0 : w->b[2 * c],
                                   .x = c < 0 ? 0 : w->b[2 * c + 1],
                                   .score = (double)INFINITY,
                                   .source = FO_PLACE_ALIGNED};
    }
    return true;
}

/* The edge with the largest residual, if it is an outlier and the group holds without it; -1: none.
 */
static int outlier(const fo_tile_place *place, int n, const fo_edge *edge, int n_edges, work *w)
{
    int worst = -1;
    double most = OUTLIER_PX;
    for (int e = 0; e < n_edges; e++) {
        const fo_tile_place *a = &place[edge[e].from], *b = &place[edge[e].to];
        if (!edge[e].used || a->source != FO_PLACE_ALIGNED || b->source != FO_PLACE_ALIGNED)
            continue;
        const double r = hypot(b->y - a->y - edge[e].y, b->x - a->x - edge[e].x);
        if (r <= most) continue;
        connect(w->parent, n, edge, n_edges, e);
        if (root_of(w->parent, edge[e].from) != root_of(w->parent, edge[e].to)) continue;
        most = r;
        worst = e;
    }
    return worst;
}

/* ---- tiles without edges ---- */

/* Fit y and x = p0 + p1 column + p2 row to the aligned tiles; a direction that they do not span has
 * the expected step. */
static void fit_grid(const fo_tile_place *place, const fo_tiles *t, double overlap, double model[6])
{
    const double step_y = (1 - overlap) * (double)t->y, step_x = (1 - overlap) * (double)t->x;
    /* a weak belief in the expected grid settles what the tiles leave open */
    const double belief = 1e-6;
    double a[9] = {0}, b[6] = {0};
    a[4] = a[8] = belief;
    a[0] = 1e-12;
    b[2 * 1 + 1] = belief * step_x;
    b[2 * 2] = belief * step_y;
    for (int i = 0; i < fo_tiles_count(t); i++) {
        if (place[i].source != FO_PLACE_ALIGNED) continue;
        const double term[3] = {1, i % t->columns, i / t->columns};
        for (int r = 0; r < 3; r++) {
            for (int c = 0; c < 3; c++) a[3 * r + c] += term[r] * term[c];
            b[2 * r] += term[r] * place[i].y;
            b[2 * r + 1] += term[r] * place[i].x;
        }
    }
    memcpy(model, b, sizeof b);
    fo_solve(a, model, 3, 2);
}

static void fill_rest(fo_tile_place *place, const fo_tiles *t, double overlap)
{
    double m[6];
    fit_grid(place, t, overlap, m);
    for (int i = 0; i < fo_tiles_count(t); i++) {
        if (place[i].source == FO_PLACE_ALIGNED) continue;
        const double c = i % t->columns, r = i / t->columns;
        place[i] = (fo_tile_place){.y = m[0] + m[2] * c + m[4] * r,
                                   .x = m[1] + m[3] * c + m[5] * r,
                                   .score = (double)NAN,
                                   .source = FO_PLACE_MODEL};
    }
}

static void normalise(fo_tile_place *place, int n)
{
    double y = place[0].y, x = place[0].x;
    for (int i = 1; i < n; i++) {
        y = fmin(y, place[i].y);
        x = fmin(x, place[i].x);
    }
    for (int i = 0; i < n; i++) {
        place[i].y -= y;
        place[i].x -= x;
    }
}

static void keep_scores(fo_tile_place *place, const fo_edge *edge, int n_edges)
{
    for (int e = 0; e < n_edges; e++) {
        if (!edge[e].used) continue;
        fo_tile_place *end[2] = {&place[edge[e].from], &place[edge[e].to]};
        for (int k = 0; k < 2; k++) end[k]->score = fmin(end[k]->score, edge[e].score);
    }
}

static fth_status place_all(fo_tile_place *place, const fo_tiles *t, fo_edge *edge, int n_edges,
                            double overlap, work *w, fth_err *err)
{
    const int n = fo_tiles_count(t);
    connect(w->parent, n, edge, n_edges, -1);
    const int root = largest_group(w->parent, n, w->count);
    for (int e = 0; e < n_edges; e++) /* the model places the others, not their own edges */
        if (edge[e].used && root_of(w->parent, edge[e].from) != root) edge[e].used = false;
    for (int worst = 0; worst >= 0;) {
        for (int i = 0; i < n; i++) place[i].source = FO_PLACE_NONE;
        if (!solve_group(place, n, edge, n_edges, root, w))
            return FTH_FAIL(err, FTH_E_NUMERIC,
                            "places of %d tiles: their %d edges contradict each other", n, n_edges);
        worst = outlier(place, n, edge, n_edges, w);
        if (worst >= 0) edge[worst].used = false;
    }
    keep_scores(place, edge, n_edges);
    if (w->count[root] == 1) place[root].score = (double)NAN;
    fill_rest(place, t, overlap);
    normalise(place, n);
    return FTH_OK;
}

fth_status fo_place_tiles(fo_tile_place *place, const fo_tiles *tiles, fo_edge *edge, int n_edges,
                          double overlap, fth_mem *mem, fth_err *err)
{
    const uint64_t n = (uint64_t)fo_tiles_count(tiles);
    void *block = NULL;
    if (n > FO_MAX_TILES)
        return FTH_FAIL(err, FTH_E_USAGE, "%d x %d tiles in one mosaic: expected at most %d",
                        tiles->rows, tiles->columns, FO_MAX_TILES);
    FTH_TRY(fth_mem_take(mem, FTH_MEM_META, n * (n + 2) * sizeof(double) + 3 * n * sizeof(int),
                         "places of tiles", &block, err));
    double *reals = block;
    int *ints = (int *)(reals + n * (n + 2));
    work w = {
        .a = reals, .b = reals + n * n, .parent = ints, .count = ints + n, .column = ints + 2 * n};
    const fth_status s = place_all(place, tiles, edge, n_edges, overlap, &w, err);
    fth_mem_release(mem, block, NULL);
    return s;
}

bool fo_places_in_line(const fo_tile_place *place, int n, bool vertical)
{
    double across = 0;
    for (int i = 0; i < n; i++) {
        if (place[i].source != FO_PLACE_ALIGNED) return false;
        across = fmax(across, vertical ? place[i].x : place[i].y);
    }
    return across <= (n <= 2 ? 1 : 2);
}
