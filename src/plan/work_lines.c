/* work_lines.c - about how many seconds kernels take that go along lines, or move rows.
 *
 * Each is counted in what its loop does for a line and for an element; the counts hold for any
 * machine as far as its rate does, and were taken from runs on one worker of one (rates.def) with
 * lines of 8 to a million elements. What operands take on their way is in cost.c.
 */
#include "cpu/quick.h"
#include "cpu/radix.h"
#include "cpu/sort.h"
#include "ops/build.h"
#include "ops/order.h"
#include "ops/ranked.h"
#include "ops/reduce.h"
#include "plan/plan.h"
#include "plan/work.h"

#include <math.h>

/* The axis that an operation goes along. */
typedef struct lines {
    int dim;         /* of input 0; -1: none */
    double n, count; /* elements of a line, lines */
    double size;     /* bytes of an element */
    bool across;     /* neighbours are of different lines */
    bool conflict;   /* elements of a line have the same place in every cache */
} lines;

/* A column of a matrix whose rows are a multiple of a page apart has all its elements in the same
 * sets of a cache, which hold this many. */
enum { PAGE = 4096, WAYS = 16 };

static lines lines_of(const fth_call *call, int dim)
{
    const fth_desc *in = &call->node->in[0];
    const double elements = fth__tile_elements(in, &call->in[0]);
    lines l = {.dim = dim, .n = 1.0, .count = elements, .size = (double)fth_dtype_size(in->dtype)};
    if (dim < 0) return l;
    l.n = fmax(1.0, (double)call->in[0].extent[dim]);
    l.count = elements / l.n;
    int64_t pitch = fth_dtype_size(in->dtype);
    for (int i = dim + 1; i < in->n_axes; i++) pitch *= in->size[i];
    l.across = pitch > fth_dtype_size(in->dtype);
    l.conflict = l.across && pitch % PAGE == 0 && l.n >= WAYS;
    return l;
}

static lines along(const fth__plan_work *w)
{
    const fth_axis_id axis = ((const fth__axis_attr *)w->call->node->attr)->axis;
    return lines_of(w->call, fth_desc_find(&w->call->node->in[0], axis));
}

static double loop(const fth__plan_work *w, double ops)
{
    return fth__rate_seconds(w->r, FTH__RATE_LOOP, ops);
}
static double by_places(const fth__plan_work *w, double ops)
{
    return fth__rate_seconds(w->r, FTH__RATE_PLACES, ops);
}
static double selecting(const fth__plan_work *w, double ops)
{
    return fth__rate_seconds(w->r, FTH__RATE_SELECT, ops);
}
static double moving(const fth__plan_work *w, double elements)
{
    return fth__rate_seconds(w->r, FTH__RATE_MOVE, elements);
}

/* ---- order ---- */

/* Comparisons for each element of Batcher's network of n. */
static double comparisons(double n)
{
    const double levels = ceil(log2(fmax(2.0, n)));
    return levels * (levels - 1.0) / 4.0 + 1.0 - 1.0 / n;
}

/* A network over as many lines as a vector has keys of so many bytes: `base` for bringing an
 * element and taking it back, and a comparison of two vectors. The keys of more than 512 elements
 * come from the second cache. With positions beside keys that have no room for them it compares and
 * moves both. */
static double network_seconds(const fth__plan_work *w, const lines *l, double base, double key,
                              bool pairs)
{
    enum { VECTOR = 64, NEAR = 512 };
    static const double of_a_line = 2.8;
    const double lanes = VECTOR / key, groups = ceil(l->count / lanes) * lanes,
                 each = 0.081 * key * (pairs ? 2.2 : 1.0);
    const double near = w->r->of[FTH__RATE_SORT], far = w->r->of[FTH__RATE_SORT_LONG],
                 rate = l->n > NEAR       ? far
                        : l->n > NEAR / 4 ? sqrt(near * far)
                                          : near;
    return groups * l->n * each * comparisons(l->n) / (1e9 * rate) +
           fth__rate_seconds(w->r, FTH__RATE_SORT, l->count * l->n * base) +
           loop(w, of_a_line * l->count);
}

/* sort.c: the network, while its room is at most twice the lines. */
static bool in_groups(const lines *l, double most)
{
    return l->n <= most && fth__sort_fits((int64_t)l->n, (int64_t)l->size, (int64_t)l->count);
}

/* Keys with a position: of 4 bytes up to u16, else of 8 (sort_kernels.c). */
static double key_with_place(const lines *l)
{
    return l->size <= 2.0 ? 4.0 : 8.0;
}

static double radix_passes(const lines *l)
{
    return l->size <= 2.0 ? l->size : l->size <= 4.0 ? 3.0 : 6.0;
}

/* radix.c: passes over digits of 8 bits, of 11 where elements are larger than two bytes; a table
 * is added up for each digit of each line. Bytes are counted and written. Positions are looked up
 * in the line in every pass. */
static double radix_units(const lines *l, bool places)
{
    enum { OF_A_PASS = 18, COUNTED = 11, WITH_PLACES = 32, TABLE = 5600 };
    return radix_passes(l) * l->count *
           (l->n * (places          ? (l->size <= 2.0 ? 13.0 : WITH_PLACES)
                    : l->size < 2.0 ? COUNTED
                                    : OF_A_PASS) +
            (l->size <= 2.0 ? TABLE / 8.0 : TABLE));
}

/* quick_kernels.c: the network sorts runs of 256, above which parts are halved. */
static double quick_units(const lines *l)
{
    return l->count * l->n * l->size * (3.4 + 0.45 * log2(l->n / 256.0));
}

/* Elements of two bytes by their patterns, all of which are gone through. */
static double pattern_units(const lines *l)
{
    enum { PATTERNS = 1 << 16, COUNTED = 9, GONE_THROUGH = 18 };
    return l->count * (COUNTED * l->n + GONE_THROUGH * (double)PATTERNS);
}

/* Values of long lines, which were brought beside each other (sort.c). */
static double long_units(const lines *l)
{
    const fth__quick_loops *quick = FTH_ISA_BEST(fth__quick_loops);
    if (l->n >= FTH__QUICK_LEAST && quick->of[(int)l->size]) return quick_units(l);
    return fth__radix_by_patterns((int64_t)l->n, (int64_t)l->size) ? pattern_units(l)
                                                                   : radix_units(l, false);
}

/* Elements of a line that push each other out of a cache come from afar one by one. */
static double conflicts(const fth__plan_work *w, const lines *l, double each)
{
    return l->conflict ? moving(w, each * l->n * l->count) : 0.0;
}

static double sort_seconds(const fth__plan_work *w)
{
    const lines l = along(w);
    enum { FEW_ROWS = 64 }; /* of which a cache holds those a page apart */
    const bool places = (w->wanted & 2) != 0;
    if (in_groups(&l, FTH__SORT_MOST)) {
        /* a position and the element that stands there are put one by one; squares of lines are
         * turned into columns and back, those of two bytes are too many for registers */
        const double base = places ? 9.4 + 1.5 * l.size : l.size == 2.0 ? 1.6 : 0.27 * l.size;
        return network_seconds(w, &l, base, places ? key_with_place(&l) : l.size,
                               places && l.size > 4.0) +
               conflicts(w, &l,
                         places           ? 42.0
                         : l.n > FEW_ROWS ? 3.0
                                          : 0.0);
    }
    /* lines across memory are brought beside each other and taken back; what positions choose from
     * a line beyond the cache comes late, in every pass */
    const bool late = places && l.n * l.size > w->r->of[FTH__RATE_CACHE] * 1048576.0;
    return fth__rate_seconds(w->r, places ? FTH__RATE_RADIX_PLACES : FTH__RATE_RADIX,
                             places ? radix_units(&l, true) : long_units(&l)) +
           moving(w, l.across ? 2.0 * l.n * l.count : 0.0) +
           loop(w, late ? 2.0 * l.size * l.n * l.count * radix_passes(&l) : 0.0);
}

/* Short lines by the network, which puts only the first; of longer ones an element is compared with
 * the last of the best, and with all of them as often as it is one of them. */
static double topk_seconds(const fth__plan_work *w)
{
    enum { INSERTED = 27, SORTED_OUT = 105 };
    const fth__topk_attr *attr = w->call->node->attr;
    const fth_desc *in = &w->call->node->in[0];
    const lines l = lines_of(w->call, fth_desc_find(in, attr->axis));
    const int to = fth_desc_find(&w->call->node->out[0], attr->into);
    const double k = to < 0 ? 1.0 : fmin(l.n, (double)w->call->out[0].extent[to]);
    if (in_groups(&l, FTH__SORT_FEW))
        return network_seconds(w, &l, 6.0 * k / l.n - 2.3, key_with_place(&l), l.size > 4.0);
    return selecting(w, l.count * (0.4 * l.n + (k <= FTH__TOPK_FEW ? INSERTED : SORTED_OUT) * k *
                                                   (1.0 + log(l.n / fmax(1.0, k)))));
}

/* Short lines by the network; longer ones by counting what lies between keys of a sample, twice or
 * so, the second time few: long enough lines are counted at the speed of vectors. */
static double ranked_seconds(const fth__plan_work *w)
{
    enum { OF_A_LINE = 650, LONG = 1 << 16 };
    const fth__ranked_attr *attr = w->call->node->attr;
    const lines l = lines_of(w->call, fth_desc_find(&w->call->node->in[0], attr->axis));
    const bool places = w->wanted >> attr->n != 0;
    if (in_groups(&l, FTH__SORT_FEW))
        return network_seconds(w, &l, 2.2 + 0.45 * l.size, places ? key_with_place(&l) : l.size,
                               places && l.size > 4.0) +
               conflicts(w, &l, 2.1);
    const double each = l.n > LONG && l.size == 4.0 ? 0.34 : 0.5 + 0.035 * l.size;
    return selecting(w, l.count * (each * l.n + OF_A_LINE)) +
           moving(w, l.across ? 2.0 * l.n * l.count : 0.0);
}

static double searchsorted_seconds(const fth__plan_work *w)
{
    /* every other comparison is guessed wrong; entries beyond a core's cache come late */
    enum { OF_A_STEP = 5, LATE = 20 };
    const fth_call *call = w->call;
    const double bytes = fth__tile_elements(&call->node->in[0], &call->in[0]) *
                         (double)fth_dtype_size(call->node->in[0].dtype),
                 sought = fth__tile_elements(&call->node->out[0], &call->out[0]),
                 beyond = log2(fmax(1.0, bytes / (w->r->of[FTH__RATE_CORE_CACHE] * 1048576.0)));
    return loop(w, OF_A_STEP * w->flops + LATE * beyond * sought);
}

/* ---- extremes and running sums ---- */

/* Vectors along a line; short lines, and ends of others, element by element. Integers take longer
 * than reals for an element and less for a line, which is not looked at for NaN; narrow ones are
 * read twice. Lines beside each other by vectors of them. */
static double argreduce_seconds(const fth__plan_work *w)
{
    enum { SHORT = 64, OF_REALS = 33, OF_INTS = 12, VECTORS = 3 };
    const lines l = along(w);
    const double elements = l.n * l.count;
    const bool real = fth_dtype_is_real(w->call->node->in[0].dtype);
    if (l.across)
        return fth__rate_seconds(w->r, FTH__RATE_EXTREME, elements * l.size / 22.0) +
               loop(w, l.count);
    if (l.n < SHORT) return loop(w, l.count * (3.0 + l.n * (real ? 1.0 : 0.33)));
    const double each = real ? 1.0 : l.size < 4.0 ? 3.4 : 1.8;
    return fth__rate_seconds(w->r, FTH__RATE_EXTREME, each * elements * l.size / (4.0 * VECTORS)) +
           loop(w, (real ? OF_REALS : OF_INTS) * l.count);
}

bool fth__has_scan_kernel(const fth__scan_attr *attr)
{
    return attr->red == FTH_RED_SUM && !attr->reverse && !attr->exclusive;
}

/* Running sums have a kernel, in which each addition waits for the one before. Other
 * scans of lines across memory are taken some at a time, and wait for caches where all their
 * elements want the same place. */
static double scanning(const fth__plan_work *w, double ops)
{
    return fth__rate_seconds(w->r, FTH__RATE_SCAN, ops);
}

static double scan_seconds(const fth__plan_work *w)
{
    const fth__scan_attr *attr = w->call->node->attr;
    const lines l = lines_of(w->call, fth_desc_find(&w->call->node->in[0], attr->axis));
    const bool sums = attr->red <= FTH_RED_PROD,
               narrow = fth_dtype_is_real(w->call->node->in[0].dtype) && l.size < 8.0;
    const bool real = fth_dtype_is_real(w->call->node->in[0].dtype);
    if (fth__has_scan_kernel(attr) && l.across) /* rows are added to rows */
        return fth__rate_seconds(w->r, FTH__RATE_REDUCE,
                                 l.count * l.n * (0.13 * l.size + (l.conflict ? 1.8 : 0.0)));
    if (fth__has_scan_kernel(attr)) /* sums of f32 are kept in f64 */
        return scanning(w, l.count * l.n * (narrow ? 0.55 : real ? 0.35 : 0.1));
    const double each = l.across ? 1.1 + (l.conflict ? l.n > WAYS ? 6.7 : 3.0 : 0.0)
                        : sums   ? 0.65
                                 : 0.95;
    return loop(w, l.count * (l.n * each + (l.across ? 0.0 : 18.0)));
}

static double histogram_seconds(const fth__plan_work *w)
{
    return loop(w, 1.4 * w->flops); /* a bin is loaded, counted and stored */
}

static double collect_extreme_seconds(const fth__plan_work *w)
{
    const fth_desc *d = &w->call->node->out[0];
    const fth_tile *t = &w->call->out[0];
    const int dim =
        fth_desc_find(&w->call->node->in[0], ((const fth__axis_attr *)w->call->node->attr)->axis);
    const double results = fth__tile_elements(d, t);
    /* rows of columns that are neighbours are found by vectors */
    const bool across = lines_of(w->call, dim).across;
    const double each = fth_dtype_is_real(w->call->node->in[0].dtype) ? 0.08 : 0.06;
    return loop(w, each * w->flops + (across ? 1.4 : 2.6) * results);
}

static double collect_seconds(const fth__plan_work *w)
{
    const fth_desc *in = &w->call->node->in[0];
    const double columns = in->n_axes > 0 ? (double)w->call->in[0].extent[in->n_axes - 1] : 1.0;
    const int dim = fth_desc_find(in, ((const fth__axis_attr *)w->call->node->attr)->axis);
    return loop(w, w->flops * (dim < in->n_axes - 1 ? fmax(0.2, 1.6 / fmax(1.0, columns)) : 1.6));
}

/* ---- rows to and from places ---- */

/* Elements of a row that lies in one piece: behind the axis that is chosen from. */
static double row_elements(const fth_desc *d, const fth_tile *t, int dim)
{
    double n = 1.0;
    for (int i = dim + 1; i < d->n_axes; i++) n *= (double)t->extent[i];
    return n;
}

/* Rows that a gather takes out of its table. */
typedef struct taken {
    double rows, bytes; /* of a row */
    double table;       /* bytes */
} taken;

static taken taken_by(const fth_node *n, const fth_tile *v, const fth_tile *out)
{
    const int dim = fth_desc_find(&n->in[0], ((const fth__axis_attr *)n->attr)->axis);
    const double row = dim < 0 ? 1.0 : row_elements(&n->in[0], v, dim),
                 size = (double)fth_dtype_size(n->out[0].dtype);
    return (taken){fth__tile_elements(&n->out[0], out) / fmax(1.0, row), row * size,
                   fth__tile_elements(&n->in[0], v) * size};
}

double fth__gather_share(const fth_node *n)
{
    static const double LINE = 64.0; /* bytes that come at a time */
    fth_tile v = {0}, out = {0};
    for (int i = 0; i < n->in[0].n_axes; i++) v.extent[i] = n->in[0].size[i];
    for (int i = 0; i < n->out[0].n_axes; i++) out.extent[i] = n->out[0].size[i];
    const taken t = taken_by(n, &v, &out);
    return t.table > 0.0 ? fmin(1.0, t.rows * ceil(t.bytes / LINE) * LINE / t.table) : 1.0;
}

/* Elements and short rows are taken by loops of their own, longer rows are copied one by one;
 * beside what their bytes take (cost.c). Rows of a table that is in no cache come late, though some
 * are fetched at a time. */
static double gather_seconds(const fth__plan_work *w)
{
    enum { SHORT = 32 }; /* bytes */
    const taken t = taken_by(w->call->node, &w->call->in[0], &w->call->out[0]);
    const double core = w->r->of[FTH__RATE_CORE_CACHE] * 1048576.0,
                 near = fth__near_share(w->r, t.table),
                 each = t.bytes > SHORT   ? 1.6
                        : t.table <= core ? 0.3
                                          : 0.5;
    return by_places(w, t.rows * (each + (1.0 - near) * 2.2));
}

/* Rows of v into a result, each element by itself; a row of a result that a core's cache does not
 * hold comes late. */
static double scatter(const fth__plan_work *w, double row, double each, double late)
{
    const fth_call *call = w->call;
    const fth_desc *out = &call->node->out[0];
    const double elements = w->flops, index = fth__tile_elements(&call->node->in[1], &call->in[1]),
                 rows = index > 0.0 && index < elements ? index : elements,
                 bytes =
                     fth__tile_elements(out, &call->out[0]) * (double)fth_dtype_size(out->dtype);
    const bool far = bytes > w->r->of[FTH__RATE_CORE_CACHE] * 1048576.0;
    return loop(w, each * elements) + by_places(w, (row + (far ? late : 0.0)) * rows);
}
static double scatter_add_seconds(const fth__plan_work *w)
{
    return scatter(w, 0.8, 0.35, 3.0);
}
static double scatter_seconds(const fth__plan_work *w)
{
    const fth__scatter_put_attr *attr = w->call->node->attr;
    if (attr->how == FTH_SCATTER_SET) return scatter(w, 3.2, 1.0, 14.0);
    return scatter(w, 1.2, 4.4, 25.0); /* NaN and both zeros have their order */
}

/* ---- means and exponentials of lines ---- */

/* Lines are read twice; those that lie side by side by vectors of them. */
static double variance_seconds(const fth__plan_work *w)
{
    enum { OF_A_LINE = 15 };
    const lines l = lines_of(w->call, fth__reduce_dim(w->call->node));
    const double elements = l.n * l.count, each = l.across ? 3.3 : l.size < 8.0 ? 6.5 : 3.6;
    return fth__rate_seconds(w->r, FTH__RATE_REDUCE, each * elements) +
           loop(w, l.across ? 0.0 : OF_A_LINE * l.count);
}

/* Exponentials in f64, whatever the elements are. Other reductions are counted by their class. */
static double reduce_seconds(const fth__plan_work *w)
{
    enum { OF_A_LINE = 350 };
    const fth__reduce_attr *attr = w->call->node->attr;
    if (attr->red != FTH_RED_LOGSUMEXP) return fth__rate_seconds(w->r, FTH__RATE_REDUCE, w->flops);
    const lines l = lines_of(w->call, fth__reduce_dim(w->call->node));
    const double elements = l.n * l.count, each = l.across ? 1.65 : l.size < 8.0 ? 5.0 : 2.7;
    return fth__rate_seconds(w->r, FTH__RATE_EXP_F64, each * elements) +
           loop(w, l.across ? 0.0 : OF_A_LINE * l.count);
}

typedef struct row {
    const fth_op *op;
    double (*seconds)(const fth__plan_work *w);
} row;
static const row rows[] = {
    {&fth__op_sort, sort_seconds},
    {&fth__op_topk, topk_seconds},
    {&fth__op_ranked, ranked_seconds},
    {&fth__op_searchsorted, searchsorted_seconds},
    {&fth__op_argreduce, argreduce_seconds},
    {&fth__op_scan, scan_seconds},
    {&fth__op_histogram, histogram_seconds},
    {&fth__op_variance, variance_seconds},
    {&fth__op_reduce, reduce_seconds},
    {&fth__op_collect_extreme, collect_extreme_seconds},
    {&fth__op_collect, collect_seconds},
    {&fth__op_gather, gather_seconds},
    {&fth__op_scatter_add, scatter_add_seconds},
    {&fth__op_scatter, scatter_seconds},
};

bool fth__lines_seconds(const fth__plan_work *w, double *seconds)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].op != w->call->node->op) continue;
        *seconds = rows[i].seconds(w);
        return true;
    }
    return false;
}
