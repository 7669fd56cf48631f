/* test_focus_fuse.c - whole fusions: against the same thing written in operations of the engine,
 * the same bytes for any budget, number of threads and cut, and what is refused.
 * seconds: 2
 */
#include "instruments/focus/ops/energy.h"
#include "testing/focus/focus.h"

#include <fathom/plan.h>
#include <math.h>

static void *made(fth_dtype t, fo_sizes n, t_random *r)
{
    const int64_t count = n.stack * n.z * n.y * n.x;
    void *v = malloc((size_t)(count * fth_dtype_size(t)) + 1);
    for (int64_t i = 0; i < count; i++) {
        /* smooth along x, with noise, so that planes are alike but not the same */
        const int64_t x = i % n.x, z = i / (n.y * n.x) % n.z;
        const int64_t value = 40 + x * 2 % 60 + t_random_i64(r, 0, 20 + 30 * (z == x % n.z));
        if (t == FTH_U8)
            ((uint8_t *)v)[i] = (uint8_t)value;
        else if (t == FTH_U16)
            ((uint16_t *)v)[i] = (uint16_t)(value * 300);
        else
            ((float *)v)[i] = (float)value / 256;
    }
    return v;
}

static const fth_dtype dtypes[] = {FTH_U8, FTH_U16, FTH_F32};

/* ---- the same in operations of the engine ---- */

/* v moved so that element (y, x) is what stands at (y + dy, x + dx), with a border. */
static fth_val moved(fth_val v, int64_t by, const char *axis, fo_border border)
{
    fth_graph *g = v.graph;
    int64_t n = 0;
    for (int d = 0; d < fth_val_axes(v); d++)
        if (strcmp(fth_val_axis(v, d), axis) == 0) n = fth_val_size(v, d);
    const fth_val at = fth_add(fth_index(g, axis), fth_const_i64(g, FTH_I64, by)),
                  zero = fth_const_i64(g, FTH_I64, 0), last = fth_const_i64(g, FTH_I64, n - 1);
    const fth_val inside = fth_min(fth_max(at, zero), last);
    fth_val from = inside;
    if (border == FO_BORDER_REFLECT101) { /* one bounce is enough here */
        const fth_val low = fth_abs(at);
        from = fth_sub(last, fth_abs(fth_sub(last, low)));
    } else if (border == FO_BORDER_MIRROR) {
        const fth_val low =
            fth_select(fth_lt(at, zero), fth_sub(fth_const_i64(g, FTH_I64, -1), at), at);
        from =
            fth_select(fth_gt(low, last), fth_sub(fth_const_i64(g, FTH_I64, 2 * n - 1), low), low);
    }
    const fth_val there = fth_gather(v, axis, from);
    if (border != FO_BORDER_ZERO) return there;
    return fth_select(fth_eq(at, inside), there, fth_const(g, FTH_F64, 0));
}

static fth_val correlate(fth_val v, const double *w, int k, const char *axis, fo_border border)
{
    fth_val sum = {0};
    for (int i = 0; i < k; i++) {
        if (w[i] == 0) continue;
        const fth_val part =
            fth_mul(moved(v, i - k / 2, axis, border), fth_const(v.graph, FTH_F64, w[i]));
        sum = fth_val_ok(sum) ? fth_add(sum, part) : part;
    }
    return sum;
}

static fth_val energy_log(fth_val v, int k, fo_border border)
{
    double g[FO_MOST_K], s[FO_MOST_K], d[FO_MOST_K];
    static const double sides[3] = {1, 0, 1};
    fo_energy_gauss(k, g);
    const fth_val b = correlate(correlate(v, g, k, "x", border), g, k, "y", border);
    if (k == 3) {
        const fth_val corners =
            correlate(correlate(b, sides, 3, "x", border), sides, 3, "y", border);
        return fth_abs(fth_sub(fth_mul(corners, fth_const(v.graph, FTH_F64, 2)),
                               fth_mul(b, fth_const(v.graph, FTH_F64, 8))));
    }
    fo_energy_laplace(k, s, d);
    return fth_abs(fth_add(correlate(correlate(b, d, k, "x", border), s, k, "y", border),
                           correlate(correlate(b, s, k, "x", border), d, k, "y", border)));
}

static fth_val energy_of(fth_val v, const fo_fusion *how)
{
    static const double diff[3] = {-1, 0, 1}, sum[3] = {1, 2, 1}, bend[3] = {-1, 2, -1},
                        box[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    fth_graph *g = v.graph;
    const fo_border b = how->border;
    switch (how->measure) {
    case FO_MEASURE_TENENGRAD:
        return fth_add(fth_sqr(correlate(correlate(v, diff, 3, "x", b), sum, 3, "y", b)),
                       fth_sqr(correlate(correlate(v, sum, 3, "x", b), diff, 3, "y", b)));
    case FO_MEASURE_MODLAP:
        return fth_add(fth_abs(correlate(v, bend, 3, "x", b)),
                       fth_abs(correlate(v, bend, 3, "y", b)));
    case FO_MEASURE_VARIANCE: {
        const fth_val n = fth_const(g, FTH_F64, 81);
        const fth_val s = fth_div(correlate(correlate(v, box, 9, "x", b), box, 9, "y", b), n);
        const fth_val q =
            fth_div(correlate(correlate(fth_sqr(v), box, 9, "x", b), box, 9, "y", b), n);
        return fth_sub(q, fth_sqr(s));
    }
    case FO_MEASURE_UNSET:
    case FO_MEASURE_LOG:
    case FO_MEASURES:
    default: return energy_log(v, how->k, b);
    }
}

/* The planes with the largest energy, and how far the second is. */
static void by_engine(const tf_job *job, int64_t *index, double *gap)
{
    fth_err err = {0};
    fo_fusion how = job->how;
    fth_context *ctx = NULL;
    OK(fo_fusion_settle(&how, &err));
    OK(fth_context_create(&ctx, NULL, &err));
    fth_graph *g = fth_graph_create(ctx);
    const fo_sizes n = job->n;
    fth_axis(g, "z", n.z);
    fth_axis(g, "y", n.y);
    fth_axis(g, "x", n.x);
    fth_axis(g, "two", n.z > 1 ? 2 : 1);
    union {
        const void *in;
        void *out;
    } cast = {job->data};
    const fth_source s = {.kind = "memory",
                          .dtype = job->dtype,
                          .n_axes = 3,
                          .size = {n.z, n.y, n.x},
                          .data = cast.out};
    const fth_val v = fth_cast(fth_input(g, "v", job->dtype, "z y x", s), FTH_F64);
    fth_val e = energy_of(v, &how);
    if (how.method != FO_LOG) {
        double w[2 * FO_MOST_SMOOTH + 1], total = 0;
        const int r = (int)ceil(4 * how.sigma);
        for (int i = 0; i <= 2 * r; i++) total += w[i] = exp(-0.5 * pow((i - r) / how.sigma, 2));
        for (int i = 0; i <= 2 * r; i++) w[i] /= total;
        e = correlate(correlate(e, w, 2 * r + 1, "x", FO_BORDER_MIRROR), w, 2 * r + 1, "y",
                      FO_BORDER_MIRROR);
    }
    const fth_val top = fth_layout(fth_topk(e, "z", "two", true), "y x two");
    const fth_val best = fth_argmax(e, "z");
    const int64_t a = n.y * n.x, two = n.z > 1 ? 2 : 1;
    double *tops = malloc((size_t)(a * two) * sizeof *tops);
    fth_tensor *t[2];
    OKE(fth_tensor_wrap(&t[0], fth_context_mem(ctx), "top", FTH_F64, 3,
                        ((int64_t[]){n.y, n.x, two}), tops, &err),
        &err);
    OKE(fth_tensor_wrap(&t[1], fth_context_mem(ctx), "index", FTH_I64, 2, ((int64_t[]){n.y, n.x}),
                        index, &err),
        &err);
    const fth_sink sink[2] = {fth_tensor_sink(t[0]), fth_tensor_sink(t[1])};
    fth_plan *p = fth_plan_make(g, ((fth_val[]){top, best}), 2, &(fth_limits){.sinks = sink}, &err);
    if (!p) OKE(err.status, &err);
    OKE(fth_run(p, sink, NULL, NULL, &err), &err);
    for (int64_t i = 0; i < a; i++)
        gap[i] = two == 1 ? 1 : (tops[i * 2] - tops[i * 2 + 1]) / (tops[i * 2] + 1e-30);
    fth_plan_destroy(p);
    fth_tensor_release(t[0]);
    fth_tensor_release(t[1]);
    fth_graph_destroy(g);
    OK(fth_context_destroy(ctx, NULL));
    free(tops);
}

static void compare(const tf_job *job, double tolerance)
{
    const int64_t a = job->n.y * job->n.x;
    int64_t *index = malloc((size_t)a * sizeof *index), far = 0;
    double *gap = malloc((size_t)a * sizeof *gap);
    by_engine(job, index, gap);
    tf_result r = tf_run(job);
    for (int64_t i = 0; i < a; i++) {
        if (gap[i] <= tolerance && tolerance > 0) continue;
        far++;
        if (r.index[i] != index[i])
            FAIL("method %s, measure %d, border %d, k %d, %s: plane %d at %d, not %d (gap %g)",
                 fo_method_names[job->how.method], (int)job->how.measure, (int)job->how.border,
                 job->how.k, fth_dtype_name(job->dtype), r.index[i], (int)i, (int)index[i], gap[i]);
        const int64_t at = index[i] * a + i;
        if (job->dtype == FTH_U8)
            EQ_I64(((uint8_t *)r.image)[i], ((const uint8_t *)job->data)[at]);
        else if (job->dtype == FTH_U16)
            EQ_I64(((uint16_t *)r.image)[i], ((const uint16_t *)job->data)[at]);
        else
            EQ_F64(((float *)r.image)[i], ((const float *)job->data)[at]);
    }
    LE_F64(0.9 * (double)a, far);
    tf_free(&r);
    free(index);
    free(gap);
}

TEST(every_border_by_engine_operations)
{
    t_random r = t_random_make(1);
    const fo_sizes n = {1, 5, 23, 37};
    for (int t = 0; t < 3; t++) {
        void *v = made(dtypes[t], n, &r);
        for (int b = 0; b < FO_BORDERS; b++)
            for (int k = 3; k <= 7; k += 2) {
                tf_job job = tf_job_of(FO_LOG, dtypes[t], v, n);
                job.how.border = (fo_border)b;
                job.how.k = k;
                job.how.scale = FO_SCALE_NONE;
                /* the LoG of size 3 of integers is exact, ties and all */
                compare(&job, k == 3 && t < 2 ? 0 : 1e-4);
            }
        free(v);
    }
}

TEST(every_measure_by_engine_operations)
{
    t_random r = t_random_make(2);
    const fo_sizes n = {1, 4, 21, 30};
    for (int m = 0; m < FO_MEASURES; m++)
        for (int b = 0; b < FO_BORDERS; b++) {
            const fth_dtype t = dtypes[(m + b) % 3];
            void *v = made(t, n, &r);
            tf_job job = tf_job_of(FO_LOG_SMOOTH, t, v, n);
            job.how.measure = (fo_measure)m;
            job.how.border = (fo_border)b;
            job.how.sigma = 1.5;
            job.how.scale = FO_SCALE_NONE;
            compare(&job, 1e-4);
            free(v);
        }
}

/* ---- the same bytes ---- */

static const uint8_t some[] = {1, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 0, 1, 1};

TEST(same_bytes_for_any_budget_and_threads)
{
    t_random r = t_random_make(3);
    static const char *const axes[] = {NULL, "z", "y", "stack"};
    static const fo_method methods[] = {FO_LOG, FO_LOG_SMOOTH, FO_DEPTH,     FO_MAX,
                                        FO_MIN, FO_MEAN,       FO_BEST_PLANE};
    for (int i = 0; i < 14; i++) {
        const fo_sizes n = {t_random_i64(&r, 1, 3), t_random_i64(&r, 1, 7), t_random_i64(&r, 5, 60),
                            t_random_i64(&r, 5, 60)};
        const fth_dtype t = dtypes[i % 3];
        void *v = made(t, n, &r);
        tf_job job = tf_job_of(methods[i % 7], t, v, n);
        const bool weighs = i % 7 < 3;
        job.present = i % 2 ? some : NULL;
        job.how.reject = (fo_reject)t_random_i64(&r, 0, FO_REJECTS - 1);
        job.how.want_depth = job.how.want_confidence = weighs;
        job.how.prefer = weighs ? (fo_prefer)t_random_i64(&r, 0, FO_PREFERS - 1) : FO_PREFER_NONE;
        job.how.halo_guard = weighs && i % 4 == 0;
        job.how.polarity = (fo_polarity)(i % 2);
        tf_result want = tf_run(&job);
        for (int k = 0; k < 4; k++) {
            char what[128];
            tf_job other = job;
            other.threads = 1 + k % 3;
            other.stream = axes[k];
            tf_result got = tf_try(&other);
            if (got.status == FTH_OK) {
                snprintf(what, sizeof what, "method %s, threads %d, stream %s",
                         fo_method_names[job.how.method], other.threads, axes[k] ? axes[k] : "-");
                tf_same(&want, &got, what);
            } else if (k != 1 && k != 3) /* an axis that some step needs whole cannot be forced */
                OKE(got.status, &got.err);
            tf_free(&got);
        }
        tf_free(&want);
        free(v);
    }
}

TEST(small_budget)
{
    t_random r = t_random_make(4);
    const fo_sizes n = {2, 9, 300, 200};
    for (int i = 0; i < 2; i++) {
        void *v = made(FTH_U16, n, &r);
        tf_job job = tf_job_of(i ? FO_LOG_SMOOTH : FO_LOG, FTH_U16, v, n);
        tf_result want = tf_run(&job);
        job.memory = (uint64_t)4 << 20; /* the stacks alone are 2 MiB, in place */
        tf_result got = tf_run(&job);
        tf_same(&want, &got, "4 MiB");
        tf_free(&want);
        tf_free(&got);
        free(v);
    }
}

/* ---- edges ---- */

TEST(one_plane_is_copied)
{
    t_random r = t_random_make(5);
    const fo_sizes n = {2, 1, 9, 11};
    for (int m = 0; m < FO_METHODS; m++) {
        if (m == FO_LAP_PYR || m == FO_CWT) continue; /* tested by themselves */
        uint16_t *v = made(FTH_U16, n, &r);
        tf_job job = tf_job_of((fo_method)m, FTH_U16, v, n);
        job.how.scale = FO_SCALE_NONE;
        tf_result got = tf_run(&job);
        for (int i = 0; i < 2 * 9 * 11; i++)
            EQ_F64(got.dtype == FTH_F32 ? (double)((float *)got.image)[i]
                                        : (double)((uint16_t *)got.image)[i],
                   v[i]);
        EQ_F64(got.stats[FO_STAT_MEDIAN_CORR], 1);
        EQ_F64(got.stats[FO_STAT_N_KEPT], 1);
        tf_free(&got);
        free(v);
    }
}

TEST(narrow_images)
{
    t_random r = t_random_make(6);
    const fo_sizes sizes[] = {{1, 3, 1, 20}, {1, 3, 20, 1}, {1, 3, 1, 1}};
    for (int i = 0; i < 3; i++) {
        uint8_t *v = made(FTH_U8, sizes[i], &r);
        tf_job job = tf_job_of(FO_MAX, FTH_U8, v, sizes[i]);
        job.how.scale = FO_SCALE_NONE;
        tf_result got = tf_run(&job);
        const int64_t a = sizes[i].y * sizes[i].x;
        for (int64_t k = 0; k < a; k++) {
            const uint8_t most = v[k] > v[a + k] ? v[k] : v[a + k];
            EQ_I64(((uint8_t *)got.image)[k], most > v[2 * a + k] ? most : v[2 * a + k]);
        }
        IS_TRUE(isfinite(got.stats[FO_STAT_MEAN_LOG]));
        tf_free(&got);
        job = tf_job_of(FO_LOG_SMOOTH, FTH_U8, v, sizes[i]);
        got = tf_try(&job);
        IS(got.status, FTH_E_CONFIG); /* k = 3 is larger than the image */
        HAS(got.err.text, "larger than the image");
        tf_free(&got);
        job.how.k = 1;
        got = tf_run(&job);
        tf_free(&got);
        job.how.k = 0;
        job.how.measure = FO_MEASURE_VARIANCE;
        got = tf_run(&job);
        tf_free(&got);
        free(v);
    }
}

TEST(constant_stack)
{
    const fo_sizes n = {1, 4, 8, 8};
    uint16_t v[4 * 64];
    for (int i = 0; i < 4 * 64; i++) v[i] = 4095;
    tf_job job = tf_job_of(FO_LOG_SMOOTH, FTH_U16, v, n);
    job.how.significant_bits = 12;
    for (int invert = 0; invert < 2; invert++) {
        job.how.method = invert ? FO_LOG_SMOOTH : FO_LOG;
        job.how.polarity = invert ? FO_POLARITY_INVERT : FO_POLARITY_KEEP;
        tf_result r = tf_run(&job);
        for (int i = 0; i < 64; i++) EQ_I64(((uint16_t *)r.image)[i], invert ? 65535 : 0);
        EQ_F64(r.lo[0], 4095);
        EQ_F64(r.hi[0], 4096); /* a range has a width */
        EQ_F64(r.stats[FO_STAT_CONSTANT], 1);
        EQ_F64(r.stats[FO_STAT_SATURATED], 1);
        EQ_I64(r.index[9], 0); /* the smallest of equals */
        tf_free(&r);
    }
}

/* A plane that does not exist never wins, whatever it holds. */
TEST(missing_planes_never_win)
{
    t_random r = t_random_make(7);
    const fo_sizes n = {1, 5, 24, 24};
    static const uint8_t has[5] = {1, 0, 1, 1, 0};
    for (int m = 0; m < FO_METHODS; m++) {
        if (m == FO_LAP_PYR || m == FO_CWT) continue;
        uint16_t *v = made(FTH_U16, n, &r);
        tf_job job = tf_job_of((fo_method)m, FTH_U16, v, n);
        job.present = has;
        job.how.want_depth = m < FO_DEPTH;
        tf_result a = tf_run(&job);
        for (int z = 0; z < 5; z++)
            for (int i = 0; !has[z] && i < 24 * 24; i++)
                v[z * 576 + i] = (uint16_t)t_random_i64(&r, 0, 65535);
        tf_result b = tf_run(&job);
        tf_same(&a, &b, fo_method_names[m]);
        for (int i = 0; a.index && i < 576; i++) IS_TRUE(has[a.index[i]]);
        EQ_F64(a.stats[FO_STAT_N_TOTAL], 3);
        tf_free(&a);
        tf_free(&b);
        free(v);
    }
}

TEST(scales_and_polarity)
{
    const fo_sizes n = {1, 1, 3, 4};
    const uint16_t v[12] = {0, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000, 65535};
    tf_job job = tf_job_of(FO_MAX, FTH_U16, v, n);
    job.how.scale = FO_SCALE_FIXED;
    job.how.scale_lo = 100;
    job.how.scale_hi = 900;
    tf_result r = tf_run(&job);
    const uint16_t *image = r.image;
    EQ_I64(image[0], 0);
    EQ_I64(image[5], 32767); /* (500-100)/800 * 65535 = 32767.5, cut */
    EQ_I64(r.image8[5], 127);
    EQ_I64(image[11], 65535);
    EQ_F64(r.stats[FO_STAT_LO], 100);
    tf_free(&r);
    job.how.scale = FO_SCALE_DTYPE;
    job.how.polarity = FO_POLARITY_INVERT;
    r = tf_run(&job);
    for (int i = 0; i < 12; i++) EQ_I64(((uint16_t *)r.image)[i], 65535 - v[i]);
    tf_free(&r);
}

TEST(nan_names_its_plane)
{
    t_random r = t_random_make(8);
    const fo_sizes n = {1, 4, 6, 6};
    float *v = made(FTH_F32, n, &r);
    v[2 * 36 + 5] = NAN;
    for (int m = 0; m < FO_METHODS; m++) {
        if (m == FO_LAP_PYR || m == FO_CWT) continue;
        tf_job job = tf_job_of((fo_method)m, FTH_F32, v, n);
        tf_result got = tf_try(&job);
        IS(got.status, FTH_E_FILE_FORMAT);
        HAS(got.err.text, "NaN (plane 2)");
        tf_free(&got);
    }
    free(v);
}

/* ---- old plates: their accidents ---- */

static uint32_t crc32_of(const void *data, size_t n)
{
    uint32_t crc = ~0u;
    for (size_t i = 0; i < n; i++) {
        crc ^= ((const uint8_t *)data)[i];
        for (int k = 0; k < 8; k++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

TEST(wrapped_normalisation)
{
    int64_t count;
    uint16_t *v = tf_golden("stack_u16.npy", NULL, FTH_U16, &count);
    uint8_t *narrow = malloc((size_t)count);
    const fo_sizes n = {1, 1, 7 * 96, 80}; /* one plane: the image is what was normalised */
    tf_job job = tf_job_of(FO_METHOD_UNSET, FTH_U16, v, n);
    job.how.compat = FO_COMPAT_YX1;
    tf_result r = tf_run(&job);
    EQ_U64(crc32_of(r.image, (size_t)count * 2), 1791886051);
    int zeros = 0;
    for (int64_t i = 0; i < count; i++) zeros += ((uint16_t *)r.image)[i] == 0;
    EQ_I64(zeros, 6); /* the darkest stay dark in an inverted image */
    tf_free(&r);
    for (int64_t i = 0; i < count; i++) v[i] = (uint16_t)(v[i] >> 6), narrow[i] = (uint8_t)v[i];
    r = tf_run(&job); /* 16 bits that hold 8: scrambled */
    EQ_U64(crc32_of(r.image, (size_t)count * 2), 959201382);
    tf_free(&r);
    job = tf_job_of(FO_METHOD_UNSET, FTH_U8, narrow, n);
    job.how.compat = FO_COMPAT_YX1;
    r = tf_run(&job);
    EQ_U64(crc32_of(r.image8, (size_t)count), 1442680127);
    NEAR(r.lo[0], 24.3759, 1e-9);
    tf_free(&r);
    free(v);
    free(narrow);
}

/* Stacks are scaled each by itself: a neighbour in the batch changes nothing. */
TEST(batch_does_not_matter)
{
    t_random r = t_random_make(9);
    const fo_sizes two = {2, 4, 20, 20}, one = {1, 4, 20, 20};
    uint16_t *v = made(FTH_U16, two, &r);
    for (int i = 0; i < 1600; i++) v[1600 + i] = (uint16_t)(v[1600 + i] * 3);
    tf_job job = tf_job_of(FO_LOG_SMOOTH, FTH_U16, v, two);
    tf_result both = tf_run(&job);
    for (int s = 0; s < 2; s++) {
        job = tf_job_of(FO_LOG_SMOOTH, FTH_U16, v + s * 1600, one);
        tf_result alone = tf_run(&job);
        SAME_BYTES(alone.image, (uint16_t *)both.image + s * 400, 800);
        SAME_BYTES(alone.stats, both.stats + s * FO_STATS, FO_STATS * sizeof(double));
        tf_free(&alone);
    }
    tf_free(&both);
    free(v);
}

/* ---- settings ---- */

static void refused(fo_fusion how, fo_sizes n, fth_dtype t, const char *part)
{
    fth_err err = {0};
    fth_status s = fo_fusion_settle(&how, &err);
    if (s == FTH_OK) s = fo_fusion_check(&how, &n, t, &err);
    IS(s, FTH_E_CONFIG);
    HAS(err.text, part);
}

TEST(settings_are_checked)
{
    const fo_sizes n = {1, 4, 20, 20};
    const fo_fusion d = fo_fusion_default();
    fo_fusion how = d;
#define BAD(field, value, part)                                                                    \
    do {                                                                                           \
        how = d;                                                                                   \
        how.field = value;                                                                         \
        refused(how, n, FTH_U16, part);                                                            \
    } while (0)
    BAD(k, 4, "expected an odd number");
    BAD(k, 33, "at most 31");
    BAD(k, 21, "larger than the image, 20 x 20");
    BAD(sigma, 40, "sigma 40");
    BAD(sigma, (double)NAN, "sigma");
    BAD(window, 2, "window 2");
    BAD(levels, 13, "13 levels");
    BAD(consistency, 3, "consistency 3");
    BAD(alpha, 1.5, "alpha 1.5");
    BAD(corr, 2, "corr 2");
    BAD(low, 99.999, "percentiles");
    BAD(high, 101, "percentiles");
    BAD(scale, FO_SCALE_FIXED, "scale fixed");
    BAD(significant_bits, 17, "significant bits");
    how = d, how.method = FO_MAX, how.measure = FO_MEASURE_MODLAP;
    refused(how, n, FTH_U16, "measure modlap is for log-smooth and depth");
    how = d, how.method = FO_CWT, how.halo_guard = true;
    refused(how, n, FTH_U16, "halo guard");
    how = d, how.method = FO_MEAN, how.prefer = FO_PREFER_FAR;
    refused(how, n, FTH_U16, "prefer far");
    refused(d, (fo_sizes){1, 70000, 20, 20}, FTH_U16, "at most 65535");
    refused(d, (fo_sizes){1, 0, 20, 20}, FTH_U16, "no pixel");
    refused(d, n, FTH_I32, "u8, u16 or f32");
    how = d, how.compat = FO_COMPAT_YX1;
    refused(how, n, FTH_F32, "u8 and u16");
    how.method = FO_LOG_SMOOTH;
    refused(how, n, FTH_U16, "uses method log, not log-smooth");
    how.method = FO_METHOD_UNSET, how.k = 5;
    refused(how, n, FTH_U16, "filter size 3");
    how.k = 0, how.border = FO_BORDER_REPLICATE;
    refused(how, n, FTH_U16, "border zero");
    how.border = FO_BORDER_UNSET, how.scale = FO_SCALE_DTYPE;
    refused(how, n, FTH_U16, "uses its own percentiles");
    how.scale = FO_SCALE_UNSET, how.low = 1;
    refused(how, n, FTH_U16, "percentiles 0.01 and 99.99");
    how.low = -1, how.prefer = FO_PREFER_NEAR;
    refused(how, n, FTH_U16, "neither a halo guard");
}

TEST(settings_of_each_method)
{
    fo_fusion how = fo_fusion_default();
    OK(fo_fusion_settle(&how, NULL));
    EQ_I64(how.method, FO_LOG_SMOOTH);
    EQ_I64(how.border, FO_BORDER_REFLECT101);
    EQ_F64(how.sigma, 2);
    how = fo_fusion_default(), how.method = FO_LOG;
    OK(fo_fusion_settle(&how, NULL));
    EQ_I64(how.border, FO_BORDER_REPLICATE);
    EQ_I64(fo_fusion_dtype(&how, FTH_U16), FTH_U16);
    how = fo_fusion_default(), how.method = FO_CWT;
    OK(fo_fusion_settle(&how, NULL));
    EQ_I64(how.base, FO_BASE_MAX);
    EQ_I64(fo_fusion_dtype(&how, FTH_U8), FTH_U8);
    how.no_reassign = true;
    EQ_I64(fo_fusion_dtype(&how, FTH_U8), FTH_F32);
    how = fo_fusion_default(), how.compat = FO_COMPAT_KEYENCE, how.k = 9;
    OK(fo_fusion_settle(&how, NULL));
    EQ_F64(how.low, 0.1);
    EQ_F64(how.high, 99.9);
    EQ_I64(how.border, FO_BORDER_ZERO);
    EQ_I64(fo_k_of_um(3, 3.2347), 3);
    EQ_I64(fo_k_of_um(3, 1.2), 5); /* 2.5 rounds to 2 */
    EQ_I64(fo_k_of_um(3, 0.6), 11);
    EQ_I64(fo_k_of_um(3, 50), 3);
    for (int i = 0; i < FO_METHODS; i++) IS_TRUE(fo_method_names[i] != NULL);
    IS_TRUE(!fo_method_names[FO_METHODS] && !fo_stat_names[FO_STATS] &&
            fo_stat_names[FO_STATS - 1]);
}

TEST_MAIN()
