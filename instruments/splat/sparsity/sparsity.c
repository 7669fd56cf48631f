/* sparsity.c - see sparsity.h. */
#include "sparsity.h"

#include "../strategy/activate.h"
#include "kth.h"

#include <string.h>

fth_status gs_sparsity_create(gs_sparsity *s, fth_mem *mem, int64_t n, double ratio, fth_err *err)
{
    static const char *const label[3] = {"sparse opacities", "multipliers", "aim of opacities"};
    fth_tensor **const all[3] = {&s->z, &s->u, &s->aim};
    *s = (gs_sparsity){.ratio = ratio};
    fth_status st = FTH_OK;
    for (int i = 0; i < 3 && st == FTH_OK; i++) {
        st = fth_tensor_create(all[i], mem, label[i], FTH_F32, 1, &n, err);
        if (st == FTH_OK) memset(fth_tensor_data(*all[i]), 0, (size_t)fth_tensor_bytes(*all[i]));
    }
    if (st != FTH_OK) gs_sparsity_free(s);
    return st;
}

void gs_sparsity_free(gs_sparsity *s)
{
    (void)fth_tensor_release(s->z);
    (void)fth_tensor_release(s->u);
    (void)fth_tensor_release(s->aim);
    *s = (gs_sparsity){0};
}

int64_t gs_sparsity_count(double ratio, int64_t n)
{
    return (int64_t)(ratio * (double)n);
}

/* Opacities of all rows as they are stored; the caller releases them. */
static fth_status read_logits(const gs_rows *rows, float **out, fth_err *err)
{
    fth_mem *mem = fth_context_mem(rows->context);
    void *block = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)rows->n * sizeof(float), "opacities", &block,
                         err));
    const fth_status s =
        fth_tensor_get_rows(rows->tensor[GS_VALUE][GS_OPACITY], 0, rows->n, block, err);
    if (s != FTH_OK) (void)fth_mem_release(mem, block, NULL);
    *out = s == FTH_OK ? block : NULL;
    return s;
}

/* Arrays over rows, while they are worked on. */
typedef struct work {
    float *o, *z, *u, *aim;
    float limit; /* z is 0 up to here */
    bool cuts;   /* false: it is 0 nowhere */
} work;

static void activate(void *arg, int64_t from, int64_t to)
{
    const work *w = arg;
    for (int64_t i = from; i < to; i++) {
        w->o[i] = (float)gs_sigmoid((double)w->o[i]);
        w->z[i] = w->o[i] + w->u[i];
    }
}

static void cut(void *arg, int64_t from, int64_t to)
{
    const work *w = arg;
    for (int64_t i = from; i < to; i++)
        if (w->cuts && !(w->z[i] > w->limit)) w->z[i] = 0;
}

static void add_rest(void *arg, int64_t from, int64_t to)
{
    const work *w = arg;
    for (int64_t i = from; i < to; i++) w->u[i] += w->o[i] - w->z[i];
}

static void take_aim(void *arg, int64_t from, int64_t to)
{
    const work *w = arg;
    for (int64_t i = from; i < to; i++) w->aim[i] = w->z[i] - w->u[i];
}

static work work_of(const gs_sparsity *s)
{
    return (work){
        .z = fth_tensor_data(s->z), .u = fth_tensor_data(s->u), .aim = fth_tensor_data(s->aim)};
}

/* z = prune(o + u), and unless it is the start u += o - z. */
static fth_status project(gs_sparsity *s, const gs_rows *rows, bool start, fth_err *err)
{
    work w = work_of(s);
    const int64_t n = rows->n, k = gs_sparsity_count(s->ratio, n);
    FTH_TRY(read_logits(rows, &w.o, err));
    gs_rows_loop(rows->context, "opacities", n, activate, &w);
    w.cuts = k > 0;
    if (w.cuts) w.limit = gs_kth_smallest(w.z, n, k);
    gs_rows_loop(rows->context, "sparse opacities", n, cut, &w);
    if (!start) gs_rows_loop(rows->context, "multipliers", n, add_rest, &w);
    gs_rows_loop(rows->context, "aim of opacities", n, take_aim, &w);
    (void)fth_mem_release(fth_context_mem(rows->context), w.o, NULL);
    return FTH_OK;
}

fth_status gs_sparsity_begin(gs_sparsity *s, const gs_rows *rows, fth_err *err)
{
    return project(s, rows, true, err);
}

fth_status gs_sparsity_update(gs_sparsity *s, const gs_rows *rows, fth_err *err)
{
    return project(s, rows, false, err);
}

void gs_sparsity_set_aim(gs_sparsity *s)
{
    work w = work_of(s);
    take_aim(&w, 0, fth_tensor_size(s->z, 0));
}

/* Mark the k smallest. */
static void mark(gs_marks *gone, const float *logit, int64_t k)
{
    const float limit = gs_kth_smallest(logit, gone->n, k);
    int64_t below = 0, equal;
    for (int64_t i = 0; i < gone->n; i++) below += logit[i] < limit;
    equal = k - below;
    for (int64_t i = 0; i < gone->n; i++) {
        if (logit[i] > limit) continue;
        if (logit[i] < limit || equal-- > 0) gs_marks_set(gone, i);
    }
    gs_marks_count(gone);
}

fth_status gs_sparsity_prune(gs_rows *rows, double ratio, fth_err *err)
{
    fth_mem *mem = fth_context_mem(rows->context);
    const int64_t k = gs_sparsity_count(ratio, rows->n);
    float *logit = NULL;
    gs_marks gone;
    if (k == 0) return FTH_OK;
    FTH_TRY(gs_marks_create(&gone, mem, rows->n, "rows to prune", err));
    fth_status s = read_logits(rows, &logit, err);
    if (s == FTH_OK) {
        mark(&gone, logit, k);
        (void)fth_mem_release(mem, logit, NULL);
        s = gs_rows_compact(rows, &gone, err);
    }
    gs_marks_free(&gone);
    return s;
}
