/* momentum.c - see momentum.h. */
#include "momentum.h"

#include <math.h>
#include <string.h>

static const int depth[2] = {2, PT_MOMENTUM_DEPTH};

static fth_tensor *field(const pt_solver *s, int k)
{
    return k ? s->probe : s->object;
}

static int64_t count_of(const pt_solver *s, const fth_tensor *t)
{
    return (int64_t)fth_tensor_bytes(t) / fth_dtype_size(s->real);
}

static fth_status make_like(pt_solver *s, fth_tensor *like, const char *label, fth_tensor **out,
                            fth_err *err)
{
    int64_t size[FTH_MAX_AXES];
    for (int i = 0; i < fth_tensor_axes(like); i++) size[i] = fth_tensor_size(like, i);
    FTH_TRY(fth_tensor_create(out, s->mem, label, s->real, fth_tensor_axes(like), size, err));
    memset(fth_tensor_data(*out), 0, (size_t)fth_tensor_bytes(*out));
    return FTH_OK;
}

fth_status pt_momentum_create(pt_solver *s, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_META, sizeof(pt_momentum), "momentum", &block, err));
    pt_momentum *m = s->momentum = block;
    *m = (pt_momentum){0};
    for (int k = 0; k < 2; k++) {
        FTH_TRY(make_like(s, field(s, k), "start of the epoch", &m->start[k], err));
        FTH_TRY(make_like(s, field(s, k), "speed", &m->speed[k], err));
        for (int i = 0; i < depth[k]; i++)
            FTH_TRY(make_like(s, field(s, k), "change before", &m->past[k][i], err));
    }
    return FTH_OK;
}

void pt_momentum_destroy(pt_solver *s)
{
    pt_momentum *m = s->momentum;
    if (!m) return;
    for (int k = 0; k < 2; k++) {
        fth_tensor_release(m->start[k]);
        fth_tensor_release(m->speed[k]);
        for (int i = 0; i < PT_MOMENTUM_DEPTH; i++) fth_tensor_release(m->past[k][i]);
    }
    fth_mem_release(s->mem, m, NULL);
    s->momentum = NULL;
}

void pt_momentum_begin(pt_solver *s)
{
    for (int k = 0; k < 2; k++) {
        fth_tensor *t = field(s, k);
        memcpy(fth_tensor_data(s->momentum->start[k]), fth_tensor_view(t),
               (size_t)fth_tensor_bytes(t));
    }
}

/* ---- agreement ---- */

/* Decay of the agreement of changes from epoch to epoch; below 0 when one of them disagrees. */
static double friction_of(const pt_solver *s, int k, const void *change, double length)
{
    const pt_momentum *m = s->momentum;
    double above = 0, below = 0;
    if (m->known[k] < depth[k] || !(length > 0)) return -1;
    for (int i = 0; i < depth[k]; i++) {
        const void *past = fth_tensor_view(m->past[k][i]);
        const int64_t n = count_of(s, m->past[k][i]);
        double r = 0;
        for (int64_t j = 0; j < n; j++) r += pt_get(change, s->real, j) * pt_get(past, s->real, j);
        r /= length;
        if (!(r > 0)) return -1;
        above += (i + 1) * log(r);
        below += (i + 1) * (i + 1);
    }
    const double friction = -0.5 * above / below;
    return friction < 0 ? 0 : friction > 1 ? 1 : friction;
}

/* ---- the step ---- */

/* Weight the object's momentum by the illumination. */
static double weight_at(const void *light, fth_dtype real, int64_t i, double most)
{
    const double l = pt_get(light, real, i);
    return most > 0 ? l / (0.1 * most + l) : 0;
}

static void move(pt_solver *s, int k, const void *change, double friction)
{
    pt_momentum *m = s->momentum;
    void *speed = fth_tensor_data(m->speed[k]), *now = fth_tensor_data(field(s, k));
    const void *light = fth_tensor_view(s->light);
    const int64_t n = count_of(s, m->speed[k]), cells = s->rows * s->cols;
    double most = 0;
    for (int64_t i = 0; k == 0 && i < cells; i++) most = fmax(most, pt_get(light, s->real, i));
    for (int64_t i = 0; i < n; i++) {
        const double v = (1 - friction) * pt_get(speed, s->real, i) + pt_get(change, s->real, i);
        const double by = k ? 1 : weight_at(light, s->real, i % cells, most);
        pt_put(speed, s->real, i, v);
        pt_put(now, s->real, i, pt_get(now, s->real, i) + s->opt.momentum * by * v);
    }
}

static void keep(pt_solver *s, int k, const void *change, double length)
{
    pt_momentum *m = s->momentum;
    fth_tensor *oldest = m->past[k][depth[k] - 1];
    for (int i = depth[k] - 1; i > 0; i--) m->past[k][i] = m->past[k][i - 1];
    m->past[k][0] = oldest;
    void *to = fth_tensor_data(oldest);
    const int64_t n = count_of(s, oldest);
    for (int64_t i = 0; i < n; i++)
        pt_put(to, s->real, i, length > 0 ? pt_get(change, s->real, i) / length : 0);
    if (m->known[k] < depth[k]) m->known[k]++;
}

void pt_momentum_end(pt_solver *s)
{
    pt_momentum *m = s->momentum;
    const bool falls = s->epoch > 0 && s->history[s->epoch] < s->history[s->epoch - 1];
    for (int k = 0; k < 2; k++) {
        void *change = fth_tensor_data(m->start[k]), *speed = fth_tensor_data(m->speed[k]);
        const void *now = fth_tensor_view(field(s, k));
        const int64_t n = count_of(s, m->start[k]);
        double length = 0;
        for (int64_t i = 0; i < n; i++) {
            const double d = pt_get(now, s->real, i) - pt_get(change, s->real, i);
            pt_put(change, s->real, i, d);
            length += d * d;
        }
        length = sqrt(length);
        const double friction = friction_of(s, k, change, length);
        if (falls && friction >= 0)
            move(s, k, change, friction);
        else
            for (int64_t i = 0; i < n; i++)
                pt_put(speed, s->real, i, 0.5 * pt_get(speed, s->real, i));
        keep(s, k, change, length);
    }
}
