/* test_spatial_nearest.c - the operation that finds nearest places: the lists of the grid, whole
 * and in pieces, on a device too. seconds: 3 labels: gpu
 */
#include "instruments/spatial/ops/nearest/nearest.h"
#include "testing/engine/op_harness.h"

typedef struct shape {
    int cells, queries, k;
    bool own, self;
} shape;

/* Drawn in a square, on a lattice with ties, most of them in one spot. */
static void place(float *xy, int64_t n, int kind, t_random *r)
{
    for (int64_t i = 0; i < 2 * n; i++) {
        const double x = t_random_f64(r) * 100;
        xy[i] = (float)(kind == 0 ? x : kind == 1 ? (int)(x / 9) : i / 2 % 7 ? 40 + x / 1e4 : x);
    }
}

static void check(const shape *s, int kind, t_random *r)
{
    char axes[120];
    fth_mem *mem = NULL;
    fth_mem_options opt;
    sp_grid *grid = NULL;
    fth_mem_options_default(&opt);
    OK(fth_mem_create(&mem, &opt, NULL));
    float *xy = malloc(8 * (size_t)s->cells), *at = malloc(8 * (size_t)s->queries);
    int32_t *got = malloc(4 * (size_t)(s->queries * s->k)), *want = malloc(4 * (size_t)s->k);
    void *room = malloc(sp_grid_room(s->k));
    place(xy, s->cells, kind, r);
    place(at, s->queries, kind, r);
    OK(sp_grid_create(&grid, mem, xy, s->cells, NULL));
    const int64_t squares = grid->squares.nx * grid->squares.ny;
    snprintf(axes, sizeof axes, "square1=%d cell=%d dim=2 query=%d nbr=%d", (int)squares + 1,
             s->cells, s->queries, s->k);
    fth_graph *g = t_graph(axes);
    const float *asked = s->own ? xy : at;
    const sp_nearest in = {.grid = grid,
                           .start = t_input(g, "start", FTH_I32, "square1", grid->start),
                           .id = t_input(g, "id", FTH_I32, "cell", grid->id),
                           .places = t_input(g, "places", FTH_F32, "cell dim", grid->at),
                           .at = t_input(g, "at", FTH_F32, "query dim", asked),
                           .own = s->own,
                           .self = s->self};
    t_eval(sp_nearest_(FTH_HERE, &in), got);
    for (int64_t i = 0; i < s->queries; i++) {
        want[0] = (int32_t)i;
        sp_grid_nearest(grid, asked + 2 * i, s->k - s->self, s->own ? i : -1, want + s->self, NULL,
                        room);
        SAME_BYTES(got + i * s->k, want, sizeof *want * (size_t)s->k);
    }
    t_graph_free(g);
    sp_grid_destroy(grid);
    OK(fth_mem_destroy(mem, NULL));
    free(xy), free(at), free(got), free(want), free(room);
}

/* As many as lanes, more, and more than there are places. */
TEST(lists_are_those_of_the_grid)
{
    static const shape shapes[] = {{300, 20, 5, false, false}, {60, 60, 50, true, false},
                                   {60, 60, 33, true, true},   {200, 9, 70, false, false},
                                   {30, 12, 40, false, false}, {1, 1, 1, true, true},
                                   {120, 120, 32, true, false}};
    t_random r = t_random_make(1);
    t_cuts(3);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int kind = 0; kind < 3; kind++) check(&shapes[i], kind, &r);
}

TEST(an_axis_for_the_neighbours_is_needed)
{
    t_random r = t_random_make(2);
    fth_graph *g = t_graph("square1=2 cell=3 dim=2 query=1");
    const sp_grid grid = {.squares = {.nx = 1, .ny = 1}};
    const sp_nearest in = {.grid = &grid,
                           .start = t_noise(g, "start", FTH_I32, "square1", &r),
                           .id = t_noise(g, "id", FTH_I32, "cell", &r),
                           .places = t_noise(g, "places", FTH_F32, "cell dim", &r),
                           .at = t_noise(g, "at", FTH_F32, "query dim", &r)};
    sp_nearest_(FTH_HERE, &in);
    REFUSED(g, FTH_E_AXIS_MISSING, "expected an axis 'nbr'");
    t_graph_free(g);
}

TEST_MAIN()
