/* fused_team.c - a long tail with few results: blocks of the grid are distributed over workers.
 *
 * Workers leave the partial of each block in a slot of its own; when a wave of blocks is done, one
 * thread adds the slots in order. The bits are those of the serial walk, whatever the schedule.
 */
#include "cpu/fused_tail.h"

#include "base/assert.h"
#include "base/checked.h"
#include "graph/grid.h"

/* Blocks times results of a task: up to 65,536 elements, beside which its start costs little. Four
 * tasks for each worker in a wave even out different speeds. Neither was measured. */
enum { TASK_BLOCKS = 64, TASKS_PER_WORKER = 4 };

typedef struct wave {
    const fth__vm *vm;
    fth__spot spot; /* first element of the results' columns */
    int64_t cols;   /* results */
    int64_t first;  /* tail index of the first block */
    int64_t n_blocks;
    int64_t per_task; /* blocks */
    char *slots;      /* partials, block by block */
} wave;

static int64_t blocks_per_task(int64_t cols)
{
    return fth__max_i64(1, TASK_BLOCKS / cols);
}

uint64_t fth__team_scratch(const fth_call *call, const fth__tail *tail)
{
    if (tail->dim < 0) return 0;
    int64_t results = 1;
    for (int k = 0; k < call->node->out[0].n_axes; k++) results *= call->out[0].extent[k];
    const int64_t most = fth__max_i64(TASK_BLOCKS, fth__min_i64(results, FTH__REDUCE_BLOCK));
    return (uint64_t)(most * TASKS_PER_WORKER * call->threads) * tail->wide;
}

/* One block of the grid, every result of it. */
static void compute_block(fth__worker *w, const wave *v, int64_t at, int64_t n, char *slot)
{
    const fth__vm *vm = w->vm;
    const fth__tail *tail = &vm->tail;
    const bool along = vm->col_dim == vm->tail_at;
    const int whole = along ? -1 : fth__tail_operand(vm);
    const int64_t most = along ? vm->cols : whole < 0 ? vm->rows : n;
    fth__spot spot;
    FTH_ASSERT(n > 0 && n <= tail->block);
    fth__totals_clear(vm, slot, v->cols);
    for (int64_t i = 0; i < n; i += most) {
        const int64_t some = fth__min_i64(most, n - i);
        fth__spot_move(vm, &v->spot, vm->tail_at, at + i, &spot);
        const char *values =
            whole < 0 ? fth__tail_block(w, &spot, along ? 1 : some, along ? some : v->cols)
                      : fth__at_input(vm, &spot, whole);
        if (along && tail->lanes > 1) {
            /* a block of the grid is never more than a block here */
            vm->vec->tail->blocks[tail->red][tail->from](some, tail->block, values, slot);
        } else {
            const int64_t cols = along ? 1 : v->cols,
                          step = whole < 0 ? cols : vm->stride[whole][vm->row_dim];
            vm->vec->tail->column[tail->red][tail->from](some, cols, step, 1, values, slot);
        }
    }
}

static void task(void *arg, int64_t i, int worker)
{
    const wave *v = arg;
    const fth__vm *vm = v->vm;
    FTH_ASSERT(worker >= 0 && worker < vm->call->threads);
    fth__worker w;
    fth__worker_init(&w, vm, (char *)vm->call->scratch + (uint64_t)worker * vm->worker_bytes);
    const int64_t from = i * v->per_task, to = fth__min_i64(from + v->per_task, v->n_blocks);
    const int64_t all = vm->extent[vm->tail_at], block = vm->tail.block;
    for (int64_t b = from; b < to; b++) {
        const int64_t at = v->first + b * block;
        compute_block(&w, v, at, fth__min_i64(block, all - at),
                      v->slots + b * v->cols * (int64_t)vm->tail.wide);
    }
}

static void reduce_columns(const fth__vm *vm, fth__worker *own, const fth__spot *spot, int64_t cols)
{
    const fth__tail *tail = &vm->tail;
    const int64_t all = vm->extent[vm->tail_at], per_task = blocks_per_task(cols);
    const int64_t per_wave = per_task * TASKS_PER_WORKER * vm->call->threads;
    FTH_ASSERT((uint64_t)(per_wave * cols) * tail->wide <= fth__team_scratch(vm->call, tail));
    fth__totals t; /* in the first worker's numbers, which tasks do not touch */
    fth__totals_open(own, &t, spot, vm->col_dim == vm->tail_at ? -1 : vm->col_dim, cols);
    wave v = {.vm = vm, .spot = *spot, .cols = cols, .per_task = per_task};
    v.slots = (char *)vm->call->scratch + (uint64_t)vm->call->threads * vm->worker_bytes;
    for (v.first = 0; v.first < all; v.first += per_wave * tail->block) {
        v.n_blocks = fth__min_i64(per_wave, fth__ceil_div_i64(all - v.first, tail->block));
        fth__asking_loop(&own->ask, (double)(v.n_blocks * tail->block * cols));
        fth_team_run(vm->call->team, fth__ceil_div_i64(v.n_blocks, per_task), task, &v);
        for (int64_t b = 0; b < v.n_blocks; b++) {
            const int64_t end = fth__min_i64(v.first + (b + 1) * tail->block, all);
            fth__totals_add(vm, &t, 0, cols, v.slots + b * cols * (int64_t)tail->wide,
                            vm->tail_origin + end);
        }
    }
    fth__totals_close(own, &t);
}

void fth__team_tail(const fth__vm *vm)
{
    const bool along = vm->col_dim == vm->tail_at;
    unsigned skip = 1u << vm->tail_at;
    if (!along) skip |= 1u << vm->col_dim;
    const int64_t n_cols = along ? 1 : vm->extent[vm->col_dim];
    int64_t index[FTH_MAX_AXES + 1] = {0};
    fth__spot outer = {{0}}, spot;
    fth__worker own;
    fth__worker_init(&own, vm, vm->call->scratch);
    do {
        for (int64_t c = 0; c < n_cols; c += along ? 1 : vm->cols) {
            fth__spot_move(vm, &outer, along ? -1 : vm->col_dim, c, &spot);
            reduce_columns(vm, &own, &spot, along ? 1 : fth__min_i64(vm->cols, n_cols - c));
        }
    } while (fth__spot_next(vm, skip, index, &outer));
}
