/* poses.c - see poses.h. */
#include "poses.h"

#include "network.h"

#include <math.h>
#include <string.h>

const char *const gs_pose_names[GS_POSE_PARTS] = {"poses", "first.poses", "second.poses",
                                                  "steps.poses"};

fth_status gs_poses_create(gs_poses *p, fth_mem *mem, gs_pose_kind kind, int64_t views, double rate,
                           int64_t seed, fth_err *err)
{
    const int64_t n = kind == GS_POSE_MLP ? gs_network_numbers(views) : views * GS_POSE_DELTA,
                  one = 1;
    void *block = NULL;
    *p = (gs_poses){.kind = kind, .views = views, .n = n, .rate = rate, .mem = mem};
    if (kind == GS_POSE_NONE) return FTH_OK;
    fth_status s = fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)n * sizeof(double),
                                "gradient of the poses", &block, err);
    p->gradient = block;
    for (int k = 0; k < GS_POSE_PARTS && s == FTH_OK; k++) {
        const bool steps = k == GS_POSE_STEPS;
        s = fth_tensor_create(&p->part[k], mem, gs_pose_names[k], steps ? FTH_I64 : FTH_F64, 1,
                              steps ? &one : &n, err);
        if (s == FTH_OK)
            memset(fth_tensor_data(p->part[k]), 0, (size_t)fth_tensor_bytes(p->part[k]));
    }
    if (s == FTH_OK && kind == GS_POSE_MLP)
        gs_network_begin(fth_tensor_data(p->part[GS_POSE_VALUE]), views, seed);
    if (s != FTH_OK) gs_poses_free(p);
    return s;
}

void gs_poses_free(gs_poses *p)
{
    for (int k = 0; k < GS_POSE_PARTS; k++) (void)fth_tensor_release(p->part[k]);
    if (p->gradient) (void)fth_mem_release(p->mem, p->gradient, NULL);
    *p = (gs_poses){0};
}

static void delta_of(const gs_poses *p, int64_t number, double delta[GS_POSE_DELTA])
{
    const double *value = fth_tensor_view(p->part[GS_POSE_VALUE]);
    if (p->kind == GS_POSE_MLP)
        gs_network_run(value, p->views, number, delta);
    else
        memcpy(delta, value + number * GS_POSE_DELTA, GS_POSE_DELTA * sizeof *delta);
}

void gs_poses_view(const gs_poses *p, int64_t number, const gs_view *from, gs_view *to)
{
    double delta[GS_POSE_DELTA];
    gs_extrinsics at;
    *to = *from;
    if (p->kind == GS_POSE_NONE) return;
    delta_of(p, number, delta);
    bool still = true;
    for (int k = 0; k < GS_POSE_DELTA; k++) still &= delta[k] == 0;
    if (still) return;
    gs_pose_apply(delta, from->w2c, &at);
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 4; j++) to->w2c[i][j] = (float)at.pose[i][j];
        to->centre[i] = at.centre[i];
    }
}

static void adam(gs_poses *p)
{
    const double b1 = 0.9, b2 = 0.999, eps = 1e-15;
    double *value = fth_tensor_data(p->part[GS_POSE_VALUE]),
           *first = fth_tensor_data(p->part[GS_POSE_FIRST]),
           *second = fth_tensor_data(p->part[GS_POSE_SECOND]);
    int64_t *steps = fth_tensor_data(p->part[GS_POSE_STEPS]);
    const double t = (double)++*steps, step = p->rate / (1 - pow(b1, t)),
                 root = sqrt(1 / (1 - pow(b2, t)));
    for (int64_t i = 0; i < p->n; i++) {
        const double g = p->gradient[i];
        first[i] = b1 * first[i] + (1 - b1) * g;
        second[i] = b2 * second[i] + (1 - b2) * (g * g);
        value[i] -= step * first[i] / (sqrt(second[i]) * root + eps);
    }
}

void gs_poses_step(gs_poses *p, int64_t number, const gs_view *from, const float bar[GS_VIEW])
{
    double delta[GS_POSE_DELTA], to[GS_POSE_DELTA];
    gs_extrinsics at;
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 4; j++) at.pose[i][j] = (double)bar[GS_VIEW_POSE + 4 * i + j];
        at.centre[i] = (double)bar[GS_VIEW_CENTRE + i];
    }
    delta_of(p, number, delta);
    gs_pose_apply_back(delta, from->w2c, &at, to);
    if (p->kind == GS_POSE_MLP) {
        gs_network_back(fth_tensor_view(p->part[GS_POSE_VALUE]), p->views, number, to, p->gradient);
    } else {
        memset(p->gradient, 0, (size_t)p->n * sizeof *p->gradient);
        memcpy(p->gradient + number * GS_POSE_DELTA, to, sizeof to);
    }
    adam(p);
}
