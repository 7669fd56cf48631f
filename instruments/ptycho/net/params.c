/* params.c - the parameters of the network, in the order of their names, and their first values. */
#include "net.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool pt_net_takes(int64_t n)
{
    return n == 64 || n == 128 || n == 256 || n == 512;
}

int64_t pt_net_count(const pt_net_param *p)
{
    int64_t n = 1;
    for (int i = 0; i < p->n_axes; i++) n *= p->size[i];
    return n;
}

int64_t pt_net_total(const pt_net *net)
{
    int64_t n = 0;
    for (int i = 0; i < net->n; i++) n += pt_net_count(&net->param[i]);
    return n;
}

/* ---- the table ---- */

static void add(pt_net *net, const char *layer, const char *out_axis, int64_t out,
                const char *in_axis, int64_t in)
{
    for (int bias = 0; bias < 2; bias++) {
        pt_net_param *p = &net->param[net->n++];
        *p = (pt_net_param){
            .n_axes = bias ? 1 : 4, .size = {out, in, 3, 3}, .fan_in = 9 * in, .fan_out = 9 * out};
        snprintf(p->name, sizeof p->name, "%s.%s", layer, bias ? "bias" : "weight");
        if (bias)
            snprintf(p->axes, sizeof p->axes, "%s", out_axis);
        else
            snprintf(p->axes, sizeof p->axes, "%s %s ky kx", out_axis, in_axis);
    }
}

/* Two convolutions, in -> out -> out, whose axes are called PREFIXa and PREFIXb. */
static void add_pair(pt_net *net, const char *block, const char *prefix, const char *in_axis,
                     int64_t in, int64_t out)
{
    char layer[PT_NET_NAME - 8], a[16], b[16];
    snprintf(a, sizeof a, "%sa", prefix);
    snprintf(b, sizeof b, "%sb", prefix);
    snprintf(layer, sizeof layer, "%s.conv1", block);
    add(net, layer, a, out, in_axis, in);
    snprintf(layer, sizeof layer, "%s.conv2", block);
    add(net, layer, b, out, a, out);
}

static int blocks_of(int64_t n)
{
    int blocks = 0;
    while (n > 8 << blocks) blocks++;
    return blocks;
}

/* The head called `head` of the decoder `decoder`, on the axis `last`, whose channels it parts. */
static void add_head(pt_net *net, const char *decoder, const char *head)
{
    const pt_net_options *o = &net->opt;
    const int64_t f = o->filters, wide = 32 * f, few = o->flavour == PT_FLAVOUR_TF ? 4 : o->chan,
                  h = o->flavour == PT_FLAVOUR_TF ? f * 2048 / o->n : wide,
                  edge = o->pad_object ? few : wide;
    char layer[PT_NET_NAME - 8], prefix[16], axis[16];
    if (o->pad_object) {
        snprintf(layer, sizeof layer, "%s.%s.conv1", decoder, head);
        snprintf(axis, sizeof axis, "%cbody", *head);
        add(net, layer, "chan", o->chan, axis, wide - few);
    }
    if (o->pad_object && !o->probe_big) return;
    snprintf(layer, sizeof layer, "%s.%s.conv_up_block", decoder, head);
    snprintf(prefix, sizeof prefix, "%cu", *head);
    snprintf(axis, sizeof axis, "%cedge", *head);
    add_pair(net, layer, prefix, axis, edge, h);
    snprintf(layer, sizeof layer, "%s.%s.conv2", decoder, head);
    snprintf(axis, sizeof axis, "%cub", *head);
    add(net, layer, "chan", o->chan, axis, h);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const pt_net_param *)a)->name, ((const pt_net_param *)b)->name);
}

void pt_net_init(pt_net *net, const pt_net_options *opt)
{
    static const char *const heads[] = {"amp", "phase"};
    const int blocks = blocks_of(opt->n);
    const int64_t f = opt->filters;
    char block[40], prefix[16], axis[16] = "chan";
    int64_t in = opt->chan;
    net->opt = *opt;
    net->n = 0;
    for (int i = 0; i < blocks; i++) {
        const int64_t out = 128 * f >> (blocks - 1 - i);
        snprintf(block, sizeof block, "encoder.blocks.%d", i);
        snprintf(prefix, sizeof prefix, "e%d", i);
        add_pair(net, block, prefix, axis, in, out);
        snprintf(axis, sizeof axis, "e%db", i);
        in = out;
    }
    for (int d = 0; d < 2; d++) {
        char from[16];
        int64_t before = in;
        memcpy(from, axis, sizeof from);
        for (int i = 0; i < blocks - 1; i++) {
            const int64_t out = 32 * f << (blocks - 2 - i);
            snprintf(block, sizeof block, "decoder_%s.blocks.%d", heads[d], i);
            snprintf(prefix, sizeof prefix, "%c%d", *heads[d], i);
            add_pair(net, block, prefix, from, before, out);
            snprintf(from, sizeof from, "%c%db", *heads[d], i);
            before = out;
        }
        snprintf(block, sizeof block, "decoder_%s", heads[d]);
        add_head(net, block, heads[d]);
    }
    qsort(net->param, (size_t)net->n, sizeof net->param[0], by_name);
}

/* ---- first values ---- */

enum { STREAM = 7100 }; /* of the random numbers; one for each parameter */

float pt_net_start(const pt_net *net, int i, int64_t seed, int64_t k)
{
    const pt_net_param *p = &net->param[i];
    const bool tf = net->opt.flavour == PT_FLAVOUR_TF;
    if (tf && p->n_axes == 1) return 0.0f;
    const double bound =
        tf ? sqrt(6.0 / (double)(p->fan_in + p->fan_out)) : 1 / sqrt((double)p->fan_in);
    return (float)(bound * (2 * fth_random_uniform_at(seed, 0, STREAM + i, k) - 1));
}

float pt_net_formula(const pt_net *net, int i, int64_t k)
{
    const pt_net_param *p = &net->param[i];
    const double fan = p->n_axes == 1 ? 16 : (double)(pt_net_count(p) / p->size[0]),
                 length = (double)strlen(p->name);
    return (float)(1.2 * sin(0.37 * (double)k + 0.11 * length) / sqrt(fan));
}
