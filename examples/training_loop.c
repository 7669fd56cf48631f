/* training_loop.c - fit a model to data that never lies in memory whole, stop, and go on.
 *
 * seconds: 4
 * The loss reads 100,000 rows from a source, in pieces that fit 1 MiB. Its gradient is appended to
 * the graph, Adam turns it into assigns, and one plan serves every step: what changes from step to
 * step (learning rate, step number) are inputs without axes. The same graph over mini-batches: the
 * rows of the next step are read while this one computes. Half way the parameters go to a
 * safetensors file; a second model loads it and must end with the bytes of an uninterrupted run.
 */
#include <fathom/fathom.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 100000, COLS = 16, BATCH = 1000, STEPS = 200 };

/* ---- data: numbers made when asked for; y = x . (1 2 3 ..) + a little noise ---- */

static uint64_t mix(uint64_t i)
{
    i = (i + 1) * 0x9e3779b97f4a7c15u;
    i = (i ^ (i >> 30)) * 0xbf58476d1ce4e5b9u;
    return i ^ (i >> 27);
}

static double noise(uint64_t i)
{
    return (double)(mix(i) >> 11) * 0x1p-52 - 1.0;
}

static float feature(int64_t row, int64_t col)
{
    return (float)noise((uint64_t)(row * COLS + col));
}

static fth_status read_x(void *self, const int64_t *lo, const int64_t *n, void *dst, fth_err *err)
{
    (void)self, (void)err;
    float *out = dst;
    for (int64_t r = lo[0]; r < lo[0] + n[0]; r++)
        for (int64_t c = lo[1]; c < lo[1] + n[1]; c++) *out++ = feature(r, c);
    return FTH_OK;
}

static fth_status read_y(void *self, const int64_t *lo, const int64_t *n, void *dst, fth_err *err)
{
    (void)self, (void)err;
    float *out = dst;
    for (int64_t r = lo[0]; r < lo[0] + n[0]; r++) {
        double y = 0.01 * noise(~(uint64_t)r);
        for (int64_t c = 0; c < COLS; c++) y += (double)feature(r, c) * (double)(c + 1);
        *out++ = (float)y;
    }
    return FTH_OK;
}

static const fth_source all_x = {
    .kind = "made", .dtype = FTH_F32, .n_axes = 2, .size = {ROWS, COLS}, .read = read_x};
static const fth_source all_y = {
    .kind = "made", .dtype = FTH_F32, .n_axes = 1, .size = {ROWS}, .read = read_y};

/* ---- the model: parameters outlive graphs and plans ---- */

enum { W, MOMENT_1, MOMENT_2, N_STATE };
static const char *const state_name[N_STATE] = {"w", "w.m", "w.v"};

typedef struct model {
    fth_mem *mem;
    fth_tensor *state[N_STATE];
    int64_t step; /* steps done */
} model;

static fth_status model_init(model *m, fth_mem *mem, fth_err *err)
{
    *m = (model){.mem = mem};
    for (int i = 0; i < N_STATE; i++) {
        FTH_TRY(fth_tensor_create(&m->state[i], mem, state_name[i], FTH_F32, 1, ((int64_t[]){COLS}),
                                  err));
        memset(fth_tensor_data(m->state[i]), 0, COLS * sizeof(float));
    }
    return FTH_OK;
}

static void model_clear(model *m)
{
    for (int i = 0; i < N_STATE; i++) fth_tensor_release(m->state[i]);
}

/* ---- one graph, one plan, many steps ---- */

typedef struct trainer {
    fth_graph *g;
    fth_plan *plan;
    double rate; /* this and the step are read at every run */
    int64_t step;
    float first, last; /* loss */
} trainer;

static fth_status trainer_init(trainer *t, fth_context *ctx, const model *m, int64_t rows,
                               fth_source xs, fth_source ys, fth_err *err)
{
    *t = (trainer){.g = fth_graph_create(ctx)};
    fth_graph *g = t->g;
    fth_axis(g, "row", rows);
    fth_axis(g, "col", COLS);
    const fth_val x = fth_input(g, "x", FTH_F32, "row col", xs);
    const fth_val y = fth_input(g, "y", FTH_F32, "row", ys);
    fth_val state[N_STATE];
    for (int i = 0; i < N_STATE; i++) state[i] = fth_param(g, state_name[i], "col", m->state[i]);
    const fth_val rate_in = fth_input(g, "rate", FTH_F64, "", fth_scalar_source(FTH_F64, &t->rate));
    const fth_val step_in = fth_input(g, "step", FTH_I64, "", fth_scalar_source(FTH_I64, &t->step));

    const fth_val loss = fth_mean(fth_sqr(fth_sub(fth_dot(x, state[W], "col"), y)), "row");
    fth_val grad, out[4] = {loss};
    fth_grad(loss, 1, &state[W], &grad);
    fth_adam_step(&FTH_ADAM_DEFAULT, state[W], grad, state[MOMENT_1], state[MOMENT_2], rate_in,
                  step_in, &out[1]);

    /* Every mistake above ends here. */
    const fth_limits limits = {.memory_bytes = 1 << 20};
    t->plan = fth_plan_make(g, out, 4, &limits, err);
    return t->plan ? FTH_OK : err->status;
}

static void trainer_clear(trainer *t)
{
    fth_plan_destroy(t->plan);
    fth_graph_destroy(t->g);
}

static fth_status take_step(trainer *t, model *m, fth_err *err)
{
    const fth_schedule schedule = {
        .kind = FTH_SCHEDULE_COSINE, .rate = 1.0, .last = 0.01, .steps = STEPS, .warmup = 5};
    const fth_sink sinks[4] = {fth_scalar_sink(FTH_F32, &t->last)}; /* assigns need none */
    t->rate = fth_schedule_rate(&schedule, m->step);
    t->step = m->step + 1;
    FTH_TRY(fth_run(t->plan, sinks, NULL, NULL, err));
    if (m->step == 0) t->first = t->last;
    if (++m->step % 50 == 0)
        printf("step %3d  rate %.4f  loss %.6f\n", (int)m->step, t->rate, (double)t->last);
    return FTH_OK;
}

/* Every step reads all rows. */
static fth_status train(trainer *t, fth_context *ctx, model *m, int64_t until, fth_err *err)
{
    FTH_TRY(trainer_init(t, ctx, m, ROWS, all_x, all_y, err));
    fth_plan_info info;
    fth_plan_get_info(t->plan, &info);
    if (info.passes == 0 || info.chunks < 2)
        return FTH_FAIL(err, FTH_E_STATE, "the rows were meant to be streamed");
    while (m->step < until) FTH_TRY(take_step(t, m, err));
    return FTH_OK;
}

/* ---- mini-batches ---- */

typedef struct loader {
    fth_batches *x, *y;
} loader;

/* The rows of a step depend on its number alone, so that a resumed run sees the same ones. */
static fth_status ask(loader *l, int64_t step, fth_err *err)
{
    int64_t row[BATCH];
    for (int64_t i = 0; i < BATCH; i++)
        row[i] = (int64_t)(mix((uint64_t)(step * BATCH + i)) % ROWS);
    FTH_TRY(fth_batches_ask(l->x, row, BATCH, err));
    return fth_batches_ask(l->y, row, BATCH, err);
}

static fth_status train_loaded(trainer *t, loader *l, fth_context *ctx, model *m, int64_t until,
                               fth_err *err)
{
    fth_source x, y;
    FTH_TRY(ask(l, m->step, err));
    FTH_TRY(fth_batches_take(l->x, &x, err));
    FTH_TRY(fth_batches_take(l->y, &y, err));
    FTH_TRY(trainer_init(t, ctx, m, BATCH, x, y, err));
    while (m->step < until) {
        FTH_TRY(ask(l, m->step + 1, err)); /* is read while this step computes */
        FTH_TRY(take_step(t, m, err));
        FTH_TRY(fth_batches_take(l->x, &x, err));
        FTH_TRY(fth_batches_take(l->y, &y, err));
        FTH_TRY(fth_input_set(t->g, "x", x, err));
        FTH_TRY(fth_input_set(t->g, "y", y, err));
    }
    return FTH_OK;
}

static fth_status train_batches(trainer *t, fth_context *ctx, model *m, int64_t until, fth_err *err)
{
    loader l = {0};
    fth_status s = fth_batches_create(&l.x, fth_context_mem(ctx), &all_x, BATCH, err);
    if (s == FTH_OK) s = fth_batches_create(&l.y, fth_context_mem(ctx), &all_y, BATCH, err);
    if (s == FTH_OK) s = train_loaded(t, &l, ctx, m, until, err);
    fth_batches_destroy(l.x);
    fth_batches_destroy(l.y);
    return s;
}

/* ---- a checkpoint carries everything that is needed to go on ---- */

static fth_status save(const model *m, const char *path, fth_err *err)
{
    char step[24];
    snprintf(step, sizeof step, "%d", (int)m->step);
    const fth_file_meta meta[] = {{"step", step}};
    const fth_safetensors_options opt = {.meta = meta, .n_meta = 1};
    fth_file_item item[N_STATE];
    for (int i = 0; i < N_STATE; i++)
        item[i] = (fth_file_item){state_name[i], FTH_F32, 1, {COLS}, "col"};
    fth_safetensors_writer *w;
    FTH_TRY(fth_safetensors_create(&w, m->mem, path, item, N_STATE, &opt, err));
    fth_status s = FTH_OK;
    for (int i = 0; s == FTH_OK && i < N_STATE; i++) {
        fth_sink sink;
        s = fth_safetensors_sink(w, state_name[i], &sink, err);
        if (s == FTH_OK) s = fth_sink_store(&sink, m->state[i], err);
    }
    if (s == FTH_OK) return fth_safetensors_commit(w, err);
    fth_safetensors_abandon(w);
    return s;
}

static fth_status load(model *m, const char *path, fth_err *err)
{
    fth_safetensors *f;
    FTH_TRY(fth_safetensors_open(&f, m->mem, path, err));
    fth_status s = fth_safetensors_verify(f, NULL, err);
    const char *step = fth_safetensors_meta(f, "step");
    if (s == FTH_OK && (!step || sscanf(step, "%" SCNd64, &m->step) != 1))
        s = FTH_FAIL(err, FTH_E_FILE_KEY, "%s has no step", path);
    for (int i = 0; s == FTH_OK && i < N_STATE; i++) {
        const int64_t lo = 0, n = COLS;
        fth_source source;
        s = fth_safetensors_source(f, state_name[i], &source, err);
        if (s != FTH_OK) break;
        s = source.read(source.self, &lo, &n, fth_tensor_data(m->state[i]), err);
        fth_source_close(&source);
    }
    fth_safetensors_close(f);
    return s;
}

/* ---- train; train half, save, load, train on; compare ---- */

static fth_status compare(const model *whole, const model *resumed, float first, float last,
                          fth_err *err)
{
    const float *w = fth_tensor_data(whole->state[W]);
    for (int c = 0; c < COLS; c++)
        if (fabs((double)w[c] - (c + 1)) > 0.1)
            return FTH_FAIL(err, FTH_E_NUMERIC, "w[%d] is %g, not near %d", c, (double)w[c], c + 1);
    if (!(last < 1e-3f * first))
        return FTH_FAIL(err, FTH_E_NUMERIC, "the loss went from %g to %g only", (double)first,
                        (double)last);
    for (int i = 0; i < N_STATE; i++)
        if (memcmp(fth_tensor_data(whole->state[i]), fth_tensor_data(resumed->state[i]),
                   COLS * sizeof(float)) != 0)
            return FTH_FAIL(err, FTH_E_NUMERIC, "'%s' differs after resuming", state_name[i]);
    return FTH_OK;
}

typedef fth_status train_fn(trainer *t, fth_context *ctx, model *m, int64_t until, fth_err *err);

static fth_status whole_and_resumed(fth_context *ctx, train_fn *fit, const char *path, fth_err *err)
{
    fth_mem *mem = fth_context_mem(ctx);
    trainer t[3] = {0};
    model a, b, c;
    fth_status s = model_init(&a, mem, err);
    const fth_status sb = model_init(&b, mem, err), sc = model_init(&c, mem, err);
    if (s == FTH_OK) s = sb != FTH_OK ? sb : sc;
    if (s == FTH_OK) s = fit(&t[0], ctx, &a, STEPS, err);
    if (s == FTH_OK) s = fit(&t[1], ctx, &b, STEPS / 2, err);
    if (s == FTH_OK) s = save(&b, path, err);
    if (s == FTH_OK) s = load(&c, path, err);
    if (s == FTH_OK) s = fit(&t[2], ctx, &c, STEPS, err);
    if (s == FTH_OK) s = compare(&a, &c, t[0].first, t[0].last, err);
    for (int i = 0; i < 3; i++) trainer_clear(&t[i]);
    model_clear(&a);
    model_clear(&b);
    model_clear(&c);
    return s;
}

int main(void)
{
    char path[] = "/tmp/training_loop_XXXXXX";
    const int fd = mkstemp(path);
    if (fd >= 0) close(fd);
    fth_err err = {0};
    fth_context *ctx = NULL;
    fth_status s = fth_context_create(&ctx, NULL, &err);
    if (s == FTH_OK) s = whole_and_resumed(ctx, train, path, &err);
    if (s == FTH_OK) s = whole_and_resumed(ctx, train_batches, path, &err);
    const fth_status closed = fth_context_destroy(ctx, &err);
    if (s == FTH_OK) s = closed;
    unlink(path);
    if (s != FTH_OK) {
        char text[4096];
        fth_err_format(&err, text, sizeof text);
        fprintf(stderr, "%s\n", text);
        return 1;
    }
    printf("all rows and mini-batches, resumed from a checkpoint: same bytes\n");
    return 0;
}
