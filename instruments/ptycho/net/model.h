/* model.h - the network between measured and predicted amplitudes: what is trained, and its loss.
 *
 * Measured amplitudes are scaled so that a pattern has the energy (N/2)^2 on average, or that of
 * the known object; the network sees s X / exp(w), its patches are merged, taken apart, lit and
 * diffracted, and exp(w) times the amplitudes is compared with s X, where s^2 times the energy is
 * the number of photons. w starts at ln s.
 */
#ifndef PTYCHO_NET_MODEL_H
#define PTYCHO_NET_MODEL_H

#include "../ops/physics.h"
#include "net.h"

typedef struct pt_model_options {
    pt_net_options net;
    fth_dtype real; /* f32 or f64 */
    bool wide;      /* the same as a setting: f64 */
    pt_merge_kind merge;
    bool object_big;    /* patches of a group are merged; false: each is used by itself */
    int64_t region;     /* side of the merged region, in pixels */
    int64_t modes;      /* of the probe */
    int64_t neighbours; /* nearest patterns that groups were drawn from; 0: not known */
    double nphotons;    /* of a pattern, on average */
    double probe_scale;
    double mae_weight, nll_weight;
    double realspace_weight;
    double tv_weight;            /* times it: smoothness of the region */
    double realspace_mae_weight; /* likewise: how far the region is from the truth */
    bool train_scale, train_probe;
    bool probe_mask; /* the probe is kept to a disc with a soft edge: its diameter, 0: N/2 */
    double mask_diameter, mask_sigma;
    double blur;   /* of exit waves, in pixels; 0: none */
    double energy; /* of a scaled pattern, on average; 0: (N/2)^2 */
} pt_model_options;

typedef struct pt_model {
    pt_model_options opt;
    pt_net net;
    double s; /* sqrt(nphotons / energy) */
    fth_tensor *weight[PT_NET_MOST];
    fth_tensor *log_scale;           /* w, [] */
    fth_tensor *probe_re, *probe_im; /* [mode row col] */
    fth_tensor *good;                /* [row col], 0 where pixels are masked; NULL: all are good */
    double share;                    /* of good pixels */
    fth_tensor *support;             /* [row col] of the probe; NULL: everywhere */
} pt_model;

/* Tensors without values. */
fth_status pt_model_create(pt_model *m, fth_mem *mem, const pt_model_options *opt, fth_err *err);
void pt_model_clear(pt_model *m); /* a cleared one is allowed */
/* Pixels of the detector that are neither seen nor compared: mask [row col], 1 is good; NULL: all
 * are. It belongs to the scan, not to what is trained. */
fth_status pt_model_mask(pt_model *m, fth_mem *mem, const uint8_t *mask, fth_err *err);
/* Keys of a config, for frames of n pixels, groups of `chan` patterns and a probe of `modes`; the
 * region is left at 0. FTH_E_COMMAND for what does not go together. */
fth_status pt_model_settings(const fth_config *cfg, int64_t n, int64_t chan, int64_t modes,
                             pt_model_options *out, fth_err *err);
/* sqrt(energy / mean energy of a pattern): what measured amplitudes are multiplied with. */
double pt_model_factor(const pt_model_options *opt, double mean_energy);
void pt_model_set_energy(pt_model *m, double energy); /* before its first values */

/* The disc that the probe is kept to, where the options ask for one; before pt_model_start. */
fth_status pt_model_support(pt_model *m, fth_context *ctx, fth_err *err);
/* Element i of a tensor of the model, f32 or f64. */
double pt_model_at(fth_tensor *t, int64_t i);
/* Its value at pixel i of [mode row col]. */
double pt_model_disc(const pt_model *m, int64_t i);

/* First values: weights from `seed`, or by the formula with seed -1; w; the probe [mode row col],
 * divided by probe_scale times the mean of its modulus in its disc (NULL: it is left as it is). */
void pt_model_start(pt_model *m, int64_t seed, const fth_c128 *probe);

/* All that can be trained, by number: the network, then w, then the probe. */
enum { PT_MODEL_MOST = PT_NET_MOST + 3 };
int pt_model_params(const pt_model *m);
fth_tensor *pt_model_param(const pt_model *m, int i);
const char *pt_model_name(const pt_model *m, int i);
const char *pt_model_axes(const pt_model *m, int i); /* "" for w */
bool pt_model_is_trained(const pt_model *m, int i);

/* Axes of a batch of so many groups: group chan flat row col prow pcol mode xy, and the
 * network's. */
void pt_model_declare(fth_graph *g, const pt_model *m, int64_t groups);
typedef struct pt_model_graph {
    fth_val param[PT_MODEL_MOST];
    fth_val probe;     /* [mode row col], within its disc */
    fth_val objects;   /* [group chan row col] of the network */
    fth_val region;    /* [group prow pcol]; without object_big poison */
    fth_val patch;     /* [group row col]: the middle of the region */
    fth_val predicted; /* [group chan row col] amplitudes, scaled */
    fth_val loss;      /* [] */
} pt_model_graph;
/* x [group chan row col] as measured, rel [group chan xy], factor []: the scale of x.
 * Without `lit` nothing is diffracted: for inference. */
pt_model_graph pt_model_build(fth_graph *g, const pt_model *m, fth_val x, fth_val rel,
                              fth_val factor, bool lit);

/* Add what the region is off from truth [group row col], complex, to the loss: mean differences of
 * amplitudes and of phases, where the region shows something. */
void pt_model_supervise(const pt_model *m, pt_model_graph *v, fth_val truth);

#endif
