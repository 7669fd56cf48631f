/* neighbours.c - lists of nearest cells for all cells at once, on the workers of the context.
 *
 * One search gives both kinds of lists: the nearest others of a cell are its conditional list, and
 * preceded by the cell itself its inference list. Cells are processed in the order of the grid, so
 * that consecutive searches visit the same squares. A context with a device searches there
 * (ops/nearest/nearest.h), except for sampled lists.
 */
#include "../grid/grid.h"
#include "../ops/nearest/nearest.h"
#include "neighbours_drawn.h"

#include <string.h>

enum { PIECE = 512 };

typedef struct job {
    const sp_grid *grid;
    const float *at; /* query positions; NULL: the cells of the grid */
    const float *xy; /* those of the grid, by number */
    int64_t n, k;
    int32_t *out;
    bool self;                         /* each list starts with the cell itself */
    const sp_neighbour_draws *drawing; /* NULL: take the nearest */
    char *room;
    size_t room_bytes; /* of one worker */
} job;

static void search(void *arg, int64_t piece, int worker)
{
    const job *j = arg;
    void *room = j->room + (size_t)worker * j->room_bytes;
    const int64_t end = (piece + 1) * PIECE < j->n ? (piece + 1) * PIECE : j->n;
    for (int64_t i = piece * PIECE; i < end; i++) {
        if (j->at) {
            sp_grid_nearest(j->grid, j->at + 2 * i, j->k, -1, j->out + i * j->k, NULL, room);
            continue;
        }
        const int32_t cell = j->grid->id[i];
        int32_t *list = j->out + (int64_t)cell * j->k;
        if (j->self) *list++ = cell;
        const int64_t k = j->k - j->self;
        sp_grid_nearest(j->grid, j->grid->at[i], k, cell, list, NULL, room);
        if (j->drawing && k > 0) sp_draw_neighbours(j->drawing, cell, k, list, list, room);
    }
}

static fth_status search_all(job *j, fth_context *ctx, fth_mem *mem, fth_err *err)
{
    j->room_bytes = (sp_grid_room(j->k) + 63) / 64 * 64;
    const uint64_t bytes = j->room_bytes * (uint64_t)fth_context_threads(ctx);
    FTH_TRY(
        fth_mem_take(mem, FTH_MEM_ANY, bytes, "neighbours being sorted", (void **)&j->room, err));
    const fth_status s =
        fth_context_loop(ctx, "neighbours", (j->n + PIECE - 1) / PIECE, search, j, err);
    fth_mem_release(mem, j->room, NULL);
    return s;
}

/* ---- on a device ---- */

/* An array of the host as an input of this name and these axes; it is only read. */
static fth_val array_input(fth_graph *g, const char *name, fth_dtype dtype, const char *axes,
                           int64_t rows, int64_t cols, const void *data)
{
    const fth_source s = {.kind = "memory",
                          .dtype = dtype,
                          .n_axes = cols > 0 ? 2 : 1,
                          .size = {rows, cols},
                          .data = (void *)(uintptr_t)data};
    return fth_input(g, name, dtype, axes, s);
}

static fth_val build(fth_graph *g, const job *j)
{
    const sp_grid *grid = j->grid;
    const int64_t squares = grid->squares.nx * grid->squares.ny;
    fth_axis(g, "square1", squares + 1);
    fth_axis(g, "cell", grid->n);
    fth_axis(g, "dim", 2);
    fth_axis(g, "query", j->n);
    fth_axis(g, "nbr", j->k);
    const sp_nearest in = {
        .grid = grid,
        .start = array_input(g, "start", FTH_I32, "square1", squares + 1, 0, grid->start),
        .id = array_input(g, "id", FTH_I32, "cell", grid->n, 0, grid->id),
        .places = array_input(g, "places", FTH_F32, "cell dim", grid->n, 2, grid->at),
        .at = array_input(g, "at", FTH_F32, "query dim", j->n, 2, j->at ? j->at : j->xy),
        .own = !j->at,
        .self = j->self};
    return sp_nearest_(FTH_HERE, &in);
}

static fth_status search_on_device(const job *j, fth_context *ctx, fth_err *err)
{
    fth_err why = {0}; /* fth_plan_make reports failures through it */
    const fth_sink sink = {
        .kind = "memory", .dtype = FTH_I32, .n_axes = 2, .size = {j->n, j->k}, .data = j->out};
    fth_graph *g = fth_graph_create(ctx);
    if (!g) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the graph of neighbours");
    const fth_val out = build(g, j);
    fth_plan *plan = fth_plan_make(g, &out, 1, &(fth_limits){0}, &why);
    const fth_status s = plan ? fth_run(plan, &sink, NULL, NULL, &why) : why.status;
    fth_plan_destroy(plan);
    fth_graph_destroy(g);
    if (s != FTH_OK && err) *err = why;
    return s;
}

static bool is_for_device(const job *j, const fth_context *ctx)
{
    return strcmp(fth_context_device(ctx), "cpu") != 0 && !j->drawing && j->k <= SP_NEAREST_MOST &&
           j->n > 0 && j->k > 0;
}

static fth_status search_in(job *j, fth_context *ctx, fth_mem *mem, const float *xy, int64_t cells,
                            fth_err *err)
{
    sp_grid *grid = NULL;
    FTH_TRY(sp_grid_create(&grid, mem, xy, cells, err));
    j->grid = grid;
    j->xy = xy;
    const fth_status s =
        is_for_device(j, ctx) ? search_on_device(j, ctx, err) : search_all(j, ctx, mem, err);
    sp_grid_destroy(grid);
    return s;
}

static fth_status too_few(int64_t k, int64_t cells, const char *what, fth_err *err)
{
    const fth_status s = FTH_FAIL(err, FTH_E_USAGE, "%lld neighbours of %lld cells: %s",
                                  (long long)k, (long long)cells, what);
    fth_err_hint(err, "set model.K to at most %lld", (long long)(cells - 1));
    return s;
}

static fth_status lists(fth_tensor *list, bool self, fth_context *ctx, const sp_model *m,
                        const float *xy, const int32_t *group, fth_err *err)
{
    const int64_t n = fth_tensor_size(list, 0), k = fth_tensor_size(list, 1);
    if (k - self >= n)
        return too_few(k, n, self ? "there are not as many" : "a cell is not its own neighbour",
                       err);
    const sp_neighbour_draws drawing = {
        .cov = sp_cov_of(m), .xy = xy, .group = group, .cells = n, .seed = m->set.seed};
    job j = {.n = n,
             .k = k,
             .out = fth_tensor_data(list),
             .self = self,
             .drawing = m->set.neighbors == SP_PROBABILISTIC ? &drawing : NULL};
    return search_in(&j, ctx, fth_context_mem(ctx), xy, n, err);
}

fth_status sp_neighbours_conditional(sp_nbr_conditional *out, fth_context *ctx, const sp_model *m,
                                     const float *xy, const int32_t *group, fth_err *err)
{
    *out = (sp_nbr_conditional){.list = m->nbr_kl};
    return lists(m->nbr_kl, false, ctx, m, xy, group, err);
}

fth_status sp_neighbours_inference(sp_nbr_inference *out, fth_context *ctx, const sp_model *m,
                                   const float *xy, const int32_t *group, fth_err *err)
{
    *out = (sp_nbr_inference){.list = m->nbr_inf};
    return lists(m->nbr_inf, true, ctx, m, xy, group, err);
}

fth_status sp_neighbours_of(int32_t *out, fth_context *ctx, fth_mem *mem, const float *xy,
                            int64_t cells, const float *at, int64_t n, int64_t k, fth_err *err)
{
    if (k > cells) return too_few(k, cells, "there are not as many", err);
    job j = {.at = at, .n = n, .k = k, .out = out};
    return search_in(&j, ctx, mem, xy, cells, err);
}
