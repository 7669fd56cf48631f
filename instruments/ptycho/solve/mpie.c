/* mpie.c - see mpie.h. */
#include "mpie.h"

#include <string.h>

enum { ADD, TURN }; /* plans */
enum { MOST_OUTPUTS = 6 };

static fth_tensor *field(const pt_solver *s, int k)
{
    return k ? s->probe : s->object;
}

static fth_status make_like(pt_solver *s, fth_tensor *like, const char *label, fth_tensor **out,
                            fth_err *err)
{
    int64_t size[FTH_MAX_AXES];
    for (int i = 0; i < fth_tensor_axes(like); i++) size[i] = fth_tensor_size(like, i);
    return fth_tensor_create(out, s->mem, label, s->real, fth_tensor_axes(like), size, err);
}

static fth_status make_plan(pt_solver *s, int which, fth_err *err)
{
    static const char *const name[2] = {"object", "probe"},
                             *const saved_name[2] = {"saved object", "saved probe"},
                             *const speed_name[2] = {"object's speed", "probe's speed"},
                             *const axes[2] = {"part orow ocol", "mode part row col"};
    const double share[2] = {s->opt.object_momentum, s->opt.probe_momentum};
    pt_mpie *m = s->mpie;
    fth_graph *g = m->graph[which] = fth_graph_create(s->ctx);
    fth_val out[MOST_OUTPUTS];
    int n = 0;
    fth_axis(g, "mode", s->modes);
    fth_axis(g, "part", 2);
    fth_axis(g, "row", s->n);
    fth_axis(g, "col", s->n);
    fth_axis(g, "orow", s->rows);
    fth_axis(g, "ocol", s->cols);
    for (int k = 0; k < 2; k++) {
        const fth_val now = fth_param(g, name[k], axes[k], field(s, k)),
                      saved = fth_param(g, saved_name[k], axes[k], m->saved[k]),
                      moved = fth_sub(now, saved);
        if (which == TURN) {
            out[n++] = fth_assign(saved, moved);
            continue;
        }
        const fth_val eta = fth_const(g, s->real, share[k]),
                      old = fth_param(g, speed_name[k], axes[k], m->speed[k]),
                      speed = fth_add(fth_mul(eta, old), moved),
                      next = fth_add(now, fth_mul(eta, speed));
        out[n++] = fth_assign(old, speed);
        out[n++] = fth_assign(now, next);
        out[n++] = fth_assign(saved, next);
    }
    m->plan[which] = fth_plan_make(g, out, n, NULL, err);
    return m->plan[which] ? FTH_OK : err->status;
}

fth_status pt_mpie_create(pt_solver *s, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_META, sizeof(pt_mpie), "momentum", &block, err));
    s->mpie = block;
    *s->mpie = (pt_mpie){0};
    for (int k = 0; k < 2; k++) {
        FTH_TRY(make_like(s, field(s, k), "saved", &s->mpie->saved[k], err));
        FTH_TRY(make_like(s, field(s, k), "speed", &s->mpie->speed[k], err));
    }
    FTH_TRY(make_plan(s, ADD, err));
    return make_plan(s, TURN, err);
}

void pt_mpie_destroy(pt_solver *s)
{
    pt_mpie *m = s->mpie;
    if (!m) return;
    for (int k = 0; k < 2; k++) {
        fth_plan_destroy(m->plan[k]);
        fth_graph_destroy(m->graph[k]);
    }
    for (int k = 0; k < 2; k++) {
        fth_tensor_release(m->saved[k]);
        fth_tensor_release(m->speed[k]);
    }
    fth_mem_release(s->mem, m, NULL);
    s->mpie = NULL;
}

void pt_mpie_begin(pt_solver *s)
{
    for (int k = 0; k < 2; k++) {
        const size_t bytes = (size_t)fth_tensor_bytes(field(s, k));
        memcpy(fth_tensor_data(s->mpie->saved[k]), fth_tensor_view(field(s, k)), bytes);
        memset(fth_tensor_data(s->mpie->speed[k]), 0, bytes);
    }
}

int64_t pt_mpie_left(const pt_solver *s, int64_t done)
{
    const int64_t batches = (s->data.patterns + s->opt.batch - 1) / s->opt.batch;
    return s->opt.momentum_every - (s->epoch * batches + done) % s->opt.momentum_every;
}

static fth_status run(pt_solver *s, int which, fth_err *err)
{
    const fth_sink none[MOST_OUTPUTS] = {{0}};
    return fth_stage_run(s->call, s->mpie->plan[which], none, NULL, err);
}

fth_status pt_mpie_add(pt_solver *s, fth_err *err)
{
    return run(s, ADD, err);
}

fth_status pt_mpie_turn(pt_solver *s, fth_err *err)
{
    return run(s, TURN, err);
}
