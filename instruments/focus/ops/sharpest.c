/* sharpest.c - the operation: planes are streamed, the best so far is kept.
 *
 * Rows are worked on in strips, all planes of the call for one strip before the next, so that what
 * is kept lies in the cache. Value and index so far lie in the outputs, energies in the state: a
 * row of the state has them one after the other, not by pixel.
 */
#include "sharpest.h"
#include "stack.h"

#include <string.h>

static fth_status infer(fth_node *node, fth_err *err)
{
    const fo_sharpest_attr *a = node->attr;
    FTH_TRY(fo_stack_check(node, 1, err));
    if (node->n_in == 3)
        FTH_TRY(fo_stack_need(node, 2, FTH_F32, 3, (const int[]){FO_STACK, FO_Y, FO_X},
                              "largest energies f32 [stack y x]", err));
    if (node->in[0].size[FO_Z] > UINT16_MAX)
        return FTH_FAIL(err, FTH_E_AXIS_SIZE, "focus_sharpest: %lld planes; at most %d can be told",
                        (long long)node->in[0].size[FO_Z], UINT16_MAX);
    node->n_out = a->all ? FO_SHARPEST_OUTPUTS : FO_SHARPEST_SECOND;
    for (int i = 0; i < node->n_out; i++) node->out[i] = fo_stack_image(&node->in[0], FTH_F32);
    node->out[FO_SHARPEST_VALUE].dtype = node->in[0].dtype;
    node->out[FO_SHARPEST_INDEX].dtype = FTH_U16;
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    const fo_sharpest_attr *a = node->attr;
    const int64_t reach = fo_energy_reach(&a->energy);
    const bool image = in == 2;
    if (dim == 0)
        *out = (fth_relation){.along = FTH_SAME, .out_dim = 0};
    else if (image)
        *out = (fth_relation){.along = FTH_SAME, .out_dim = dim};
    else if (dim == FO_Z)
        *out = (fth_relation){.along = FTH_ACCUMULATE, .out_dim = -1};
    else if (dim == FO_Y)
        *out = (fth_relation){
            .along = FTH_HALO, .out_dim = 1, .mul = 1, .div = 1, .lo = reach, .hi = reach};
    if ((image && dim == 2) || (!image && dim == FO_X))
        *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
}

enum { PLAIN_STATE = 1, ALL_STATE = 5 }; /* energies of a pixel */

static uint64_t state(const fth_node *node, int out)
{
    const fo_sharpest_attr *a = node->attr;
    return out == 0 ? sizeof(float) * (a->all ? ALL_STATE : PLAIN_STATE) : 0;
}

/* ---- workspace: rows of floats for a strip, some lines, and what the rows of energy need ---- */

enum { STRIP_BYTES = 1280 << 10, LEAST_STRIP = 16, MOST_STRIP = 128 };

static int64_t per_row(const fo_sharpest_attr *a)
{
    return a->all ? ALL_STATE + 2 : PLAIN_STATE + 2;
}

/* Value and plane of 16 bits each lie in one word while planes go by; where those of a row are. */
static bool is_packed(const fth_node *node)
{
    const fo_sharpest_attr *a = node->attr;
    return node->in[0].dtype == FTH_U16 && !a->all;
}
static uint32_t *packed_of(const fo_best *b)
{
    return (uint32_t *)(void *)b->value;
}

static int64_t strip_rows(const fo_sharpest_attr *a, int64_t width, int64_t rows)
{
    int64_t n = STRIP_BYTES / (per_row(a) * fo_rows_round(width) * (int64_t)sizeof(float));
    n = n < LEAST_STRIP ? LEAST_STRIP : n > MOST_STRIP ? MOST_STRIP : n;
    return n < rows ? n : rows;
}

static uint64_t scratch(const fth_call *call)
{
    const fo_sharpest_attr *a = call->node->attr;
    const int64_t width = call->node->in[0].size[FO_X],
                  rows = strip_rows(a, width, call->out[0].extent[1]);
    return fo_rows_bytes(&a->energy, width) +
           sizeof(float) *
               (uint64_t)(fo_rows_round(width) * (rows * per_row(a) + FO_ROWS_AT_ONCE + 2));
}

static double flops(const fth_call *call)
{
    const fo_sharpest_attr *a = call->node->attr;
    double n = 30.0 + 6.0 * a->energy.smooth;
    for (int d = 0; d < FO_STACK_AXES; d++) n *= (double)call->in[0].extent[d];
    return n;
}

typedef struct strip {
    const fth_call *call;
    const fo_sharpest_attr *attr;
    fo_rows rows;
    int64_t n;     /* floats of a row */
    float *all;    /* per_row() arrays for each row of the strip */
    float *e, *v;  /* some rows of energies, and one of values */
    int64_t stack; /* counted from the tile's first */
} strip;

static fo_best best_of(const strip *s, int64_t row)
{
    float *at = s->all + row * per_row(s->attr) * s->n;
    fo_best b = {.energy = at, .value = at + s->n, .index = (int32_t *)(void *)(at + 2 * s->n)};
    if (s->attr->all) {
        b.second = at + 3 * s->n;
        b.left = at + 4 * s->n;
        b.right = at + 5 * s->n;
        b.previous = at + 6 * s->n;
    }
    return b;
}

static void *out_row(const strip *s, int output, int64_t y)
{
    const fth_tile *t = &s->call->out[output];
    const int64_t size = fth_dtype_size(s->call->node->out[output].dtype);
    if (!t->data) return NULL;
    return (char *)t->data + (s->stack * t->stride[0] + (y - t->origin[1]) * t->stride[1]) * size;
}

static float *state_row(const strip *s, int64_t y)
{
    const fth_tile *t = &s->call->state[0];
    return (float *)(void *)((char *)t->data + (s->stack * t->stride[0] +
                                                (y - s->call->out[0].origin[1]) * t->stride[1]) *
                                                   (int64_t)state(s->call->node, 0));
}

/* What the state keeps of a row, in its order. */
static int kept(const strip *s, const fo_best *b, float **part)
{
    float *const all[ALL_STATE] = {b->energy, b->second, b->left, b->right, b->previous};
    memcpy(part, all, sizeof all);
    return s->attr->all ? ALL_STATE : PLAIN_STATE;
}

static void load(const strip *s, int64_t y, const fo_best *b)
{
    const int64_t width = s->rows.width;
    float *part[ALL_STATE];
    const int n = kept(s, b, part);
    for (int i = 0; i < n; i++)
        memcpy(part[i], state_row(s, y) + i * width, (size_t)width * sizeof(float));
    const void *value = out_row(s, FO_SHARPEST_VALUE, y);
    const uint16_t *index = out_row(s, FO_SHARPEST_INDEX, y);
    if (value && s->rows.dtype == FTH_U8)
        s->rows.loop->widen_u8(b->value, value, width);
    else if (value && s->rows.dtype == FTH_U16)
        s->rows.loop->widen_u16(b->value, value, width);
    else if (value)
        memcpy(b->value, value, (size_t)width * sizeof(float));
    for (int64_t x = 0; index && x < width; x++) b->index[x] = index[x];
}

static void store_value(const strip *s, int64_t y, const fo_best *b)
{
    const int64_t width = s->rows.width;
    void *value = out_row(s, FO_SHARPEST_VALUE, y);
    if (!value) return;
    if (s->rows.dtype == FTH_U8)
        for (int64_t x = 0; x < width; x++) ((uint8_t *)value)[x] = (uint8_t)b->value[x];
    else if (s->rows.dtype == FTH_U16)
        for (int64_t x = 0; x < width; x++) ((uint16_t *)value)[x] = (uint16_t)(int32_t)b->value[x];
    else
        memcpy(value, b->value, (size_t)width * sizeof(float));
}

static void store(const strip *s, int64_t y, const fo_best *b)
{
    const int64_t width = s->rows.width;
    float *part[ALL_STATE];
    const int n = kept(s, b, part);
    for (int i = 0; !s->call->last && i < n; i++)
        memcpy(state_row(s, y) + i * width, part[i], (size_t)width * sizeof(float));
    store_value(s, y, b);
    uint16_t *index = out_row(s, FO_SHARPEST_INDEX, y);
    for (int64_t x = 0; index && x < width; x++) index[x] = (uint16_t)b->index[x];
    float *const from[] = {b->energy, b->second, b->left, b->right};
    for (int i = 0; i < s->call->node->n_out - FO_SHARPEST_ENERGY; i++) {
        float *to = out_row(s, FO_SHARPEST_ENERGY + i, y);
        for (int64_t x = 0; to && x < width; x++)
            to[x] = from[i][x] > FO_NO_PLANE ? from[i][x] : FO_NO_PLANE;
    }
    float *second = s->attr->all ? out_row(s, FO_SHARPEST_SECOND, y) : NULL;
    for (int64_t x = 0; second && x < width; x++) second[x] = second[x] > 0 ? second[x] : 0;
}

/* Rows of 16 bit values, without what nobody asked for. */
static void packed_plane(strip *s, int64_t z, int64_t from, int64_t rows)
{
    const fo_energy_loops *loop = s->rows.loop;
    const uint32_t global = (uint32_t)(s->call->in[0].origin[FO_Z] + z);
    for (int64_t i = 0; i < rows; i++) {
        const fo_best b = best_of(s, i);
        const uint16_t *v = (const uint16_t *)(const void *)fo_stack_row(&s->call->in[0], sizeof *v,
                                                                         s->stack, z, from + i);
        const int64_t k = i % FO_ROWS_AT_ONCE, left = rows - i;
        const float *near[3];
        if (fo_rows_plain(&s->rows)) {
            fo_rows_near(&s->rows, from + i, near);
            loop->log_take_u16(b.energy, packed_of(&b), near, v, global, s->rows.width);
            continue;
        }
        if (k == 0)
            fo_rows_make_some(&s->rows, from + i,
                              left < FO_ROWS_AT_ONCE ? (int)left : FO_ROWS_AT_ONCE, s->e);
        loop->take_u16(b.energy, packed_of(&b), s->e + k * s->n, v, global, s->rows.width);
    }
}

static void plane(strip *s, int64_t z, int64_t from, int64_t rows)
{
    const fth_tile *in = &s->call->in[0];
    const int64_t size = fth_dtype_size(s->rows.dtype);
    const int32_t global = (int32_t)(in->origin[FO_Z] + z);
    const fo_energy_loops *loop = s->rows.loop;
    if (!fo_stack_has(&s->call->in[1], s->stack, z)) {
        for (int64_t i = 0; s->attr->all && i < rows; i++) {
            const fo_best b = best_of(s, i);
            loop->skip(&b, s->n);
        }
        return;
    }
    fo_rows_plane(&s->rows, fo_stack_row(in, size, s->stack, z, in->origin[FO_Y]), in->origin[FO_Y],
                  in->stride[FO_Y] * size);
    if (is_packed(s->call->node)) {
        packed_plane(s, z, from, rows);
        return;
    }
    for (int64_t i = 0; i < rows; i++) {
        const fo_best b = best_of(s, i);
        fo_rows_make(&s->rows, from + i, s->e);
        fo_rows_values(&s->rows, from + i, s->v);
        if (s->attr->choose != FO_CHOOSE_MOST) {
            const fth_tile *t = &s->call->in[2];
            const float *most = (const float *)t->data + s->stack * t->stride[0] +
                                (from + i - t->origin[1]) * t->stride[1];
            memcpy(s->v + s->n, most, (size_t)s->rows.width * sizeof *most);
            loop->choose(&b, s->v + s->n, s->attr->choose == FO_CHOOSE_LAST, s->e, s->v, global,
                         s->n);
        } else if (s->attr->all)
            loop->take_all(&b, s->e, s->v, global, s->n);
        else
            loop->take(&b, s->e, s->v, global, s->n);
    }
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth_tile *out = &call->out[0], *in = &call->in[0];
    strip s = {.call = call, .attr = node->attr};
    const int64_t width = node->in[0].size[FO_X], step = strip_rows(s.attr, width, out->extent[1]);
    char *work = call->scratch;
    s.n = fo_rows_round(width);
    if (width == 0 || out->extent[0] == 0 || out->extent[1] == 0) return FTH_OK;
    fo_rows_init(&s.rows, &s.attr->energy, FTH_ISA_BEST(fo_energy_loops), node->in[0].dtype,
                 node->in[0].size[FO_Y], width, work);
    s.all = (float *)(void *)(work + fo_rows_bytes(&s.attr->energy, width));
    s.e = s.all + step * per_row(s.attr) * s.n;
    s.v = s.e + FO_ROWS_AT_ONCE * s.n;
    const int64_t end = out->origin[1] + out->extent[1];
    for (s.stack = 0; s.stack < out->extent[0]; s.stack++)
        for (int64_t y = out->origin[1]; y < end; y += step) {
            const int64_t rows = end - y < step ? end - y : step;
            fth_team_until(call->team,
                           (double)(s.stack * out->extent[1] + y + rows - out->origin[1]) /
                               (double)(out->extent[0] * out->extent[1]));
            if (fth_team_cancelled(call->team)) return FTH_OK;
            for (int64_t i = 0; i < rows; i++) {
                const fo_best b = best_of(&s, i);
                s.rows.loop->start(&b, s.n);
                if (!call->first) load(&s, y + i, &b);
                if (is_packed(node) && !call->first) s.rows.loop->pack(&b, s.n);
            }
            for (int64_t z = 0; z < in->extent[FO_Z]; z++) plane(&s, z, y, rows);
            for (int64_t i = 0; i < rows; i++) {
                const fo_best b = best_of(&s, i);
                if (is_packed(node)) s.rows.loop->unpack(&b, s.n);
                store(&s, y + i, &b);
            }
        }
    return FTH_OK;
}

static const fth_op sharpest = {
    .name = "focus_sharpest",
    .brief = "for each pixel of a stack the plane with the largest energy of focus",
    .infer = infer,
    .relation = relation,
    .state = state,
    .scratch = scratch,
    .flops = flops,
    .flop_cost = 0.75,
    .run = run,
};

fth_val fo_sharpest_(fth_site site, fth_val stacks, fth_val kept_planes, fth_val most, int choose,
                     bool all, const fo_energy *energy)
{
    const fo_sharpest_attr attr = {
        .energy = *energy, .choose = choose, .all = all || choose != FO_CHOOSE_MOST};
    const fth_val in[] = {stacks, kept_planes, most};
    return fth_node_add_(stacks.graph, site, &sharpest, choose == FO_CHOOSE_MOST ? 2 : 3, in, &attr,
                         sizeof attr);
}
