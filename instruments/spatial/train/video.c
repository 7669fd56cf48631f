/* video.c - see video.h. */
#include "video.h"

#include "../model/slots.h"

#include <inttypes.h>
#include <string.h>

#define PART ".video_frames.part"

/* ---- the file of frames: f32 [frame cell factor] ---- */

static uint64_t frame_bytes(const sp_video *v)
{
    return 4 * (uint64_t)(v->model->set.cells * sp_factors(&v->model->set));
}

static fth_status write_frame(void *self, const int64_t *lo, const int64_t *n, const void *src,
                              fth_err *err)
{
    const sp_video *v = self;
    const int64_t L = sp_factors(&v->model->set);
    const char *from = src;
    for (int64_t i = 0; i < n[0]; i++, from += 4 * n[1]) {
        const uint64_t at =
            (uint64_t)v->n * frame_bytes(v) + 4 * (uint64_t)((lo[0] + i) * L + lo[1]);
        FTH_TRY(fth_file_write(v->file, at, 4 * (uint64_t)n[1], from, "a frame", err));
    }
    return FTH_OK;
}

static fth_sink frame_sink(sp_video *v)
{
    return (fth_sink){.kind = "frame",
                      .self = v,
                      .dtype = FTH_F32,
                      .n_axes = 2,
                      .size = {v->model->set.cells, sp_factors(&v->model->set)},
                      .write = write_frame};
}

static fth_status open_part(sp_video *v, int64_t kept, fth_err *err)
{
    FTH_TRY(fth_path_join(v->part, v->call->model_dir, PART, err));
    FTH_TRY(fth_file_open_update(&v->file, v->model->mem, v->part, err));
    const uint64_t end = fth_file_bytes(v->file);
    v->n = kept;
    if (end < (uint64_t)kept * frame_bytes(v)) {
        v->n = (int64_t)(end / frame_bytes(v));
        fth_stage_say(v->call, "%" PRId64 " frames of the animation are lost", kept - v->n);
    }
    return fth_file_resize(v->file, (uint64_t)v->n * frame_bytes(v), err);
}

/* ---- the graph ---- */

static fth_val place(sp_video *v, const char *name, fth_dtype dtype, const char *axes,
                     fth_tensor *t, int64_t cells, int64_t more)
{
    const fth_source none = fth_source_planned(dtype, more ? 2 : 1, (int64_t[]){cells, more});
    return fth_input(v->net.g, name, dtype, axes, t ? fth_tensor_source(t) : none);
}

static fth_status build(sp_video *v, fth_context *ctx, const sp_data *data, fth_err *err)
{
    sp_model *m = v->model;
    const sp_settings *s = &m->set;
    sp_query q = {.trained = true};
    fth_val f, unused;
    FTH_TRY(sp_model_graph_create(&v->net, ctx, m, false, s->cells, err));
    if (s->spatial) q.xy = place(v, "xy", FTH_F32, "cell dim", data ? data->xy : NULL, s->cells, 2);
    if (s->groups)
        q.group = place(v, "group", FTH_I32, "cell", data ? data->group : NULL, s->cells, 0);
    if (s->local) q.nbr = place(v, "nbr", FTH_I32, "cell nbr", m->nbr_inf, s->cells, s->K);
    FTH_TRY(sp_predict(&v->net, &q, &f, &unused, err));
    const fth_val rows = fth_layout(fth_exp(f), "cell factor");
    const fth_val out = m->real == FTH_F32 ? rows : fth_cast(rows, FTH_F32);
    const fth_sink sink = frame_sink(v);
    const fth_limits limits = {.sinks = &sink};
    v->plan = fth_plan_make(v->net.g, &out, 1, &limits, err);
    return v->plan ? FTH_OK : err ? err->status : FTH_E_NO_FIT;
}

fth_status sp_video_open(sp_video *v, fth_context *ctx, const fth_stage_call *call, sp_model *m,
                         const sp_data *data, int64_t kept, fth_err *err)
{
    *v = (sp_video){.model = m, .call = call};
    fth_status s = build(v, ctx, data, err);
    if (s == FTH_OK && data) s = open_part(v, kept, err);
    if (s != FTH_OK) sp_video_close(v);
    return s;
}

void sp_video_close(sp_video *v)
{
    if (!v->model) return;
    fth_plan_destroy(v->plan);
    if (v->net.g) sp_model_graph_destroy(&v->net);
    fth_file_close(v->file);
    *v = (sp_video){0};
}

fth_status sp_video_add(sp_video *v, fth_err *err)
{
    if (!v->model) return FTH_OK;
    const fth_sink sink = frame_sink(v);
    FTH_TRY(fth_run(v->plan, &sink, NULL, &v->report, err));
    fth_stage_account(v->call, &v->report);
    v->n++;
    return FTH_OK;
}

fth_status sp_video_sync(sp_video *v, fth_err *err)
{
    return v->model ? fth_file_sync(v->file, err) : FTH_OK;
}

/* ---- the end ---- */

/* Frames of the cycles before, when they are there and of the same shape. */
typedef struct before {
    fth_source frames;
    fth_tensor *iters;
    int64_t n;
} before;

static void open_before(before *b, const sp_video *v, int64_t first)
{
    char path[FTH_PATH];
    fth_source iters = {0};
    fth_mem *mem = v->model->mem;
    const sp_settings *s = &v->model->set;
    if (first == 0 || fth_path_join(path, v->call->model_dir, SP_FRAMES, NULL) != FTH_OK ||
        fth_npy_open(&b->frames, mem, path, NULL) != FTH_OK)
        return;
    const bool fits = b->frames.dtype == FTH_F32 && b->frames.n_axes == 3 &&
                      b->frames.size[1] == s->cells && b->frames.size[2] == sp_factors(s);
    if (fits && fth_path_join(path, v->call->model_dir, SP_FRAME_ITERS, NULL) == FTH_OK &&
        fth_npy_open(&iters, mem, path, NULL) == FTH_OK && iters.dtype == FTH_I64 &&
        iters.n_axes == 1 && iters.size[0] == b->frames.size[0] &&
        fth_source_load(&iters, mem, "frames before", &b->iters, NULL) == FTH_OK) {
        const int64_t *at = fth_tensor_data(b->iters);
        while (b->n < iters.size[0] && at[b->n] <= first) b->n++;
    }
    fth_source_close(&iters);
}

static fth_status copy_frames(sp_video *v, const before *b, const fth_sink *to, fth_err *err)
{
    const sp_settings *s = &v->model->set;
    const int64_t L = sp_factors(s), rows = (1 << 18) / L + 1;
    void *room = NULL;
    fth_mem *mem = v->model->mem;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)(4 * rows * L), "frames", &room, err));
    fth_status st = FTH_OK;
    for (int64_t f = 0; f < b->n + v->n; f++)
        for (int64_t i = 0; st == FTH_OK && i < s->cells; i += rows) {
            const int64_t n = s->cells - i < rows ? s->cells - i : rows, lo[3] = {f, i, 0},
                          size[3] = {1, n, L};
            if (f < b->n)
                st = b->frames.read(b->frames.self, lo, size, room, err);
            else
                st = fth_file_read(v->file,
                                   (uint64_t)(f - b->n) * frame_bytes(v) + 4 * (uint64_t)(i * L),
                                   4 * (uint64_t)(n * L), room, "a frame", err);
            if (st == FTH_OK) st = to->write(to->self, lo, size, room, err);
        }
    (void)fth_mem_release(mem, room, NULL);
    return st;
}

static fth_status save_frames(sp_video *v, const before *b, fth_err *err)
{
    char path[FTH_PATH];
    fth_sink sink = {0};
    const int64_t size[3] = {b->n + v->n, v->model->set.cells, sp_factors(&v->model->set)};
    FTH_TRY(fth_path_join(path, v->call->model_dir, SP_FRAMES, err));
    FTH_TRY(fth_npy_create(&sink, v->model->mem, path, FTH_F32, 3, size, err));
    fth_status s = copy_frames(v, b, &sink, err);
    if (s == FTH_OK) s = sink.commit(sink.self, err);
    fth_sink_close(&sink);
    return s;
}

static fth_status save_iters(sp_video *v, const before *b, int64_t first, int64_t interval,
                             fth_err *err)
{
    char path[FTH_PATH];
    fth_tensor *t = NULL;
    const int64_t n = b->n + v->n;
    FTH_TRY(fth_path_join(path, v->call->model_dir, SP_FRAME_ITERS, err));
    FTH_TRY(fth_tensor_create(&t, v->model->mem, "frames", FTH_I64, 1, &n, err));
    int64_t *at = fth_tensor_data(t);
    for (int64_t i = 0; i < n; i++)
        at[i] = i < b->n ? ((const int64_t *)fth_tensor_data(b->iters))[i]
                         : (first / interval + 1 + i - b->n) * interval;
    const fth_status s = fth_npy_save(v->model->mem, path, FTH_I64, 1, &n, at, err);
    fth_tensor_release(t);
    return s;
}

fth_status sp_video_save(sp_video *v, int64_t first, int64_t interval, fth_err *err)
{
    if (!v->model) return FTH_OK;
    before b = {.n = 0};
    open_before(&b, v, first);
    fth_status s = save_frames(v, &b, err);
    if (s == FTH_OK) s = save_iters(v, &b, first, interval, err);
    fth_source_close(&b.frames);
    fth_tensor_release(b.iters);
    return s;
}

fth_status sp_video_forget(const fth_stage_call *call, fth_err *err)
{
    static const char *const name[] = {SP_FRAMES, SP_FRAME_ITERS};
    for (size_t i = 0; i < sizeof name / sizeof name[0]; i++) {
        char path[FTH_PATH];
        FTH_TRY(fth_path_join(path, call->model_dir, name[i], err));
        FTH_TRY(fth_path_remove(fth_context_mem(call->context), path, err));
    }
    return FTH_OK;
}
