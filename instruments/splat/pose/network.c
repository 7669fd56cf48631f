/* network.c - see network.h. */
#include "network.h"

#include <string.h>

enum { LAYERS = 3, STREAM = 8 };
static const int outs[LAYERS] = {GS_WIDE, GS_WIDE, GS_POSE_DELTA};

/* Where a layer begins behind the embeddings. */
static int64_t layer_at(int layer)
{
    int64_t at = 0;
    for (int l = 0; l < layer; l++) at += (GS_WIDE + 1) * outs[l];
    return at;
}

int64_t gs_network_numbers(int64_t views)
{
    return views * GS_WIDE + layer_at(LAYERS);
}

void gs_network_begin(double *value, int64_t views, int64_t seed)
{
    double *layer = value + views * GS_WIDE;
    memset(value, 0, (size_t)gs_network_numbers(views) * sizeof *value);
    for (int64_t i = 0; i < layer_at(LAYERS - 1); i++) /* within 1 / sqrt(64) */
        layer[i] = (2 * fth_random_uniform_at(seed, 0, STREAM, i) - 1) / 8;
}

/* Activations: [0] the embedding, then what the hidden layers give. */
typedef struct forward {
    double at[LAYERS][GS_WIDE], out[GS_POSE_DELTA];
} forward;

static void pass(const double *value, int64_t views, int64_t view, forward *p)
{
    memcpy(p->at[0], value + view * GS_WIDE, sizeof p->at[0]);
    for (int l = 0; l < LAYERS; l++) {
        const double *matrix = value + views * GS_WIDE + layer_at(l),
                     *bias = matrix + outs[l] * GS_WIDE;
        for (int o = 0; o < outs[l]; o++) {
            double sum = bias[o];
            for (int i = 0; i < GS_WIDE; i++) sum += matrix[o * GS_WIDE + i] * p->at[l][i];
            if (l < LAYERS - 1)
                p->at[l + 1][o] = sum > 0 ? sum : 0;
            else
                p->out[o] = sum;
        }
    }
}

void gs_network_run(const double *value, int64_t views, int64_t view, double out[GS_POSE_DELTA])
{
    forward p;
    pass(value, views, view, &p);
    memcpy(out, p.out, sizeof p.out);
}

void gs_network_back(const double *value, int64_t views, int64_t view,
                     const double bar[GS_POSE_DELTA], double *gradient)
{
    forward p;
    double now[GS_WIDE] = {0}, before[GS_WIDE];
    memset(gradient, 0, (size_t)gs_network_numbers(views) * sizeof *gradient);
    pass(value, views, view, &p);
    memcpy(now, bar, GS_POSE_DELTA * sizeof *now);
    for (int l = LAYERS - 1; l >= 0; l--) {
        const int64_t at = views * GS_WIDE + layer_at(l);
        const double *matrix = value + at;
        double *to_matrix = gradient + at, *to_bias = to_matrix + outs[l] * GS_WIDE;
        memset(before, 0, sizeof before);
        for (int o = 0; o < outs[l]; o++) {
            to_bias[o] = now[o];
            for (int i = 0; i < GS_WIDE; i++) {
                to_matrix[o * GS_WIDE + i] = now[o] * p.at[l][i];
                before[i] += matrix[o * GS_WIDE + i] * now[o];
            }
        }
        for (int i = 0; i < GS_WIDE; i++) now[i] = l == 0 || p.at[l][i] > 0 ? before[i] : 0;
    }
    memcpy(gradient + view * GS_WIDE, now, sizeof now);
}
