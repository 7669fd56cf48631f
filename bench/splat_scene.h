/* splat_scene.h - a scene that anybody can make again: half of the Gaussians on a disc, a quarter
 * on a ball in its middle, a quarter far around, each as large as its share of the area; and its
 * view of 1920 x 1080 px, degree 3. For C and for CUDA. */
#ifndef FATHOM_BENCH_SPLAT_SCENE_H
#define FATHOM_BENCH_SPLAT_SCENE_H

#include <math.h>
#include <pthread.h>
#include <string.h>

enum { SCENE_WIDTH = 1920, SCENE_HEIGHT = 1080, MAKERS = 16 };

static inline double uniform(int64_t g, int k)
{
    uint32_t x = (uint32_t)(128 * g + k);
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    x ^= x >> 16;
    return (double)(x >> 8) / 0x1p24;
}

typedef struct share {
    float *at[GS_ATTRIBUTES];
    int64_t n, from, to;
} share;

static inline void make_one(const share *s, int64_t g)
{
    const double pi = 3.14159265358979323846, a = 2 * pi * uniform(g, 1), z = 2 * uniform(g, 3) - 1,
                 r = sqrt(1 - z * z), ball[3] = {r * cos(a), z, r * sin(a)},
                 out = 6 * sqrt(uniform(g, 2)), disc[3] = {out * cos(a), 1, out * sin(a)};
    const double u = uniform(g, 0),
                 area = (u < 0.5    ? 72
                         : u < 0.75 ? 16
                                    : 3600) *
                        pi / (double)s->n,
                 size = log(0.7 * sqrt(area));
    for (int i = 0; i < 3; i++) {
        const double place = u < 0.5    ? disc[i]
                             : u < 0.75 ? ball[i]
                                        : 15 * ball[i],
                     normal = sqrt(-2 * log(1 - uniform(g, 4 + 2 * i))) *
                              cos(2 * pi * uniform(g, 5 + 2 * i));
        s->at[GS_MEANS][3 * g + i] = (float)(place + exp(size) * (2 * uniform(g, 10 + i) - 1));
        s->at[GS_SCALING][3 * g + i] = (float)(size + 0.6 * normal - (i == 2));
        s->at[GS_SH_0][3 * g + i] = (float)(2 * uniform(g, 19 + i) - 1);
    }
    for (int i = 0; i < 4; i++) s->at[GS_ROTATION][4 * g + i] = (float)(2 * uniform(g, 14 + i) - 1);
    s->at[GS_OPACITY][g] = (float)(6 * uniform(g, 18) - 3);
    for (int i = 0; i < 45; i++)
        s->at[GS_SH_N][45 * g + i] = (float)(0.2 * (2 * uniform(g, 22 + i) - 1));
}

static inline void *make_share(void *arg)
{
    const share *s = (const share *)arg;
    for (int64_t g = s->from; g < s->to; g++) make_one(s, g);
    return NULL;
}

static inline void make_scene(float *const at[GS_ATTRIBUTES], int64_t n)
{
    share s[MAKERS];
    pthread_t thread[MAKERS];
    bool started[MAKERS];
    for (int i = 0; i < MAKERS; i++) {
        s[i].n = n;
        s[i].from = i * n / MAKERS;
        s[i].to = (i + 1) * n / MAKERS;
        memcpy(s[i].at, at, sizeof s[i].at);
        started[i] = pthread_create(&thread[i], NULL, make_share, &s[i]) == 0;
        if (!started[i]) make_share(&s[i]);
    }
    for (int i = 0; i < MAKERS; i++)
        if (started[i]) pthread_join(thread[i], NULL);
}

/* From (4, -1, 0.5) to the middle, down is +y. */
static inline void make_view(float view[GS_VIEW])
{
    const double eye[3] = {4, -1, 0.5}, up[3] = {0, -1, 0};
    double z[3], x[3], y[3], far = 0, wide = 0;
    for (int k = 0; k < 3; k++) far += eye[k] * eye[k];
    for (int k = 0; k < 3; k++) z[k] = -eye[k] / sqrt(far);
    for (int k = 0; k < 3; k++)
        x[k] = z[(k + 1) % 3] * up[(k + 2) % 3] - z[(k + 2) % 3] * up[(k + 1) % 3];
    for (int k = 0; k < 3; k++) wide += x[k] * x[k];
    for (int k = 0; k < 3; k++) x[k] /= sqrt(wide);
    for (int k = 0; k < 3; k++)
        y[k] = z[(k + 1) % 3] * x[(k + 2) % 3] - z[(k + 2) % 3] * x[(k + 1) % 3];
    const double *const axis[3] = {x, y, z};
    memset(view, 0, GS_VIEW * sizeof *view);
    for (int r = 0; r < 3; r++) {
        double t = 0;
        for (int k = 0; k < 3; k++) {
            view[GS_VIEW_POSE + 4 * r + k] = (float)axis[r][k];
            t -= axis[r][k] * eye[k];
        }
        view[GS_VIEW_POSE + 4 * r + 3] = (float)t;
        view[GS_VIEW_CENTRE + r] = (float)eye[r];
    }
    view[GS_VIEW_FX] = view[GS_VIEW_FY] = 1500;
    view[GS_VIEW_CX] = (float)SCENE_WIDTH / 2;
    view[GS_VIEW_CY] = (float)SCENE_HEIGHT / 2;
    view[GS_VIEW_DEGREE] = 3;
}

#endif
