/* net.h - the convolutional network: which parameters it has, and its graph.
 *
 * Grouped amplitudes [group chan row col] become the amplitude and the phase of object patches of
 * the same shape. An encoder halves the frame down to 8 by 8, two decoders double it again up to
 * half the frame, two heads make the patches: the middle from the decoder, the border from a few
 * channels of their own. Names and shapes of parameters are those of the public implementation.
 */
#ifndef PTYCHO_NET_NET_H
#define PTYCHO_NET_NET_H

#include <fathom/fathom.h>

typedef enum pt_flavour { PT_FLAVOUR_TF, PT_FLAVOUR_TORCH } pt_flavour;
#define PT_FLAVOUR_WORDS "tf torch"
typedef enum pt_activation {
    PT_ACT_SIGMOID,
    PT_ACT_SWISH,
    PT_ACT_SOFTPLUS,
    PT_ACT_RELU,
} pt_activation;
#define PT_ACTIVATION_WORDS "sigmoid swish softplus relu"

typedef struct pt_net_options {
    int64_t n, chan, filters; /* side of a frame, patterns of a group, n_filters_scale */
    pt_flavour flavour;
    pt_activation amp;
    bool probe_big;  /* the border of a patch is predicted too */
    bool pad_object; /* the middle is predicted at half the size of the frame */
} pt_net_options;

/* Sides that the network has blocks for: 64, 128, 256, 512. */
bool pt_net_takes(int64_t n);

enum { PT_NET_MOST = 128, PT_NET_NAME = 64 };
typedef struct pt_net_param {
    char name[PT_NET_NAME]; /* "encoder.blocks.0.conv1.weight" */
    char axes[64];          /* "e0a chan ky kx" */
    int n_axes;
    int64_t size[4];
    int64_t fan_in, fan_out; /* of the convolution it belongs to: 9 channels */
} pt_net_param;
typedef struct pt_net {
    pt_net_options opt;
    int n;
    pt_net_param param[PT_NET_MOST]; /* sorted by name */
} pt_net;

/* Fill in the table of parameters. Options must be possible. */
void pt_net_init(pt_net *net, const pt_net_options *opt);
int64_t pt_net_count(const pt_net_param *p); /* elements of one */
int64_t pt_net_total(const pt_net *net);     /* of all */

/* First value of element k of parameter i: Glorot's uniform numbers and zero biases (tf), or
 * uniform within 1/sqrt(fan_in) (torch); a function of (seed, i, k). */
float pt_net_start(const pt_net *net, int i, int64_t seed, int64_t k);
/* A value by a formula, for comparison with other implementations. */
float pt_net_formula(const pt_net *net, int i, int64_t k);

/* Declare the axes of all parameters and layers; group, chan, row and col are there. */
void pt_net_axes(fth_graph *g, const pt_net *net);
typedef struct pt_net_out {
    fth_val amp, phase; /* [group chan row col] */
} pt_net_out;
/* x [group chan row col]; param[i] belongs to net->param[i]. */
pt_net_out pt_net_build(const pt_net *net, fth_val x, const fth_val *param);
/* amp exp(i phase), complex. */
fth_val pt_net_object(pt_net_out out);

#endif
