/* focus.c - runs of fo_fuse for tests. */
#include "testing/focus/focus.h"

#include <fathom/io.h>
#include <fathom/plan.h>
#include <math.h>

tf_job tf_job_of(fo_method method, fth_dtype dtype, const void *data, fo_sizes n)
{
    tf_job j = {.how = fo_fusion_default(), .n = n, .dtype = dtype, .data = data};
    j.how.method = method;
    return j;
}

enum { OUTPUTS = 11 };

static void places(tf_result *r, void **place[OUTPUTS])
{
    void **const all[OUTPUTS] = {&r->image,
                                 (void **)&r->image8,
                                 (void **)&r->index,
                                 (void **)&r->depth,
                                 (void **)&r->confidence,
                                 (void **)&r->mean_log,
                                 (void **)&r->corr_next,
                                 (void **)&r->kept,
                                 (void **)&r->stats,
                                 (void **)&r->lo,
                                 (void **)&r->hi};
    memcpy(place, all, sizeof all);
}

static fth_source memory(fth_dtype t, int n, const int64_t *size, const void *data)
{
    union {
        const void *in;
        void *out;
    } cast = {data};
    fth_source s = {.kind = "memory", .dtype = t, .n_axes = n, .data = cast.out};
    memcpy(s.size, size, (size_t)n * sizeof *size);
    return s;
}

/* Plans all values that are there and runs them into memory. */
static fth_status run_all(fth_context *ctx, fth_graph *g, const tf_job *job, const fo_fused *f,
                          tf_result *r)
{
    const fth_val all[OUTPUTS] = {f->image,      f->image8,   f->index,     f->depth,
                                  f->confidence, f->mean_log, f->corr_next, f->kept,
                                  f->stats,      f->lo,       f->hi};
    fth_val want[OUTPUTS];
    fth_sink sink[OUTPUTS];
    fth_tensor *t[OUTPUTS] = {0};
    void **place[OUTPUTS];
    int n = 0;
    places(r, place);
    FTH_TRY(fth_graph_check(g, &r->err));
    for (int i = 0; i < OUTPUTS; i++) {
        int64_t size[FTH_MAX_AXES] = {0}, count = 1;
        if (!fth_val_ok(all[i])) continue;
        for (int k = 0; k < fth_val_axes(all[i]); k++) count *= size[k] = fth_val_size(all[i], k);
        r->bytes[i] = (uint64_t)(count * fth_dtype_size(fth_val_dtype(all[i])));
        *place[i] = calloc(1, r->bytes[i] + 1);
        OKE(fth_tensor_wrap(&t[n], fth_context_mem(ctx), "out", fth_val_dtype(all[i]),
                            fth_val_axes(all[i]), size, *place[i], &r->err),
            &r->err);
        sink[n] = fth_tensor_sink(t[n]);
        want[n++] = all[i];
    }
    r->dtype = fth_val_dtype(f->image);
    const fth_limits limits = {.sinks = sink, .memory_bytes = job->memory, .stream = job->stream};
    fth_plan *p = fth_plan_make(g, want, n, &limits, &r->err);
    const fth_status s = p ? fth_run(p, sink, NULL, NULL, &r->err) : r->err.status;
    fth_plan_destroy(p);
    for (int i = 0; i < n; i++) fth_tensor_release(t[i]);
    return s;
}

static fth_status fuse(const tf_job *job, tf_result *r)
{
    fo_fusion how = job->how;
    fth_options opt;
    fth_context *ctx = NULL;
    FTH_TRY(fo_fusion_settle(&how, &r->err));
    FTH_TRY(fo_fusion_check(&how, &job->n, job->dtype, &r->err));
    fth_options_default(&opt);
    opt.threads = job->threads ? job->threads : 1;
    FTH_TRY(fth_context_create(&ctx, &opt, &r->err));
    fth_graph *g = fth_graph_create(ctx);
    const int64_t size[] = {job->n.stack, job->n.z, job->n.y, job->n.x};
    uint8_t *present = malloc((size_t)(job->n.stack * job->n.z) + 1);
    memset(present, 1, (size_t)(job->n.stack * job->n.z));
    if (job->present) memcpy(present, job->present, (size_t)(job->n.stack * job->n.z));
    fth_axis(g, "stack", job->n.stack);
    fth_axis(g, "z", job->n.z);
    fth_axis(g, "y", job->n.y);
    fth_axis(g, "x", job->n.x);
    const fth_val stacks =
        fth_input(g, "stacks", job->dtype, "stack z y x", memory(job->dtype, 4, size, job->data));
    const fth_val has =
        fth_input(g, "present", FTH_U8, "stack z", memory(FTH_U8, 2, size, present));
    const fo_fused f = fo_fuse(g, stacks, has, &how);
    const fth_status s = run_all(ctx, g, job, &f, r);
    fth_graph_destroy(g);
    free(present);
    OK(fth_context_destroy(ctx, NULL));
    return s;
}

tf_result tf_try(const tf_job *job)
{
    tf_result r = {0};
    r.status = fuse(job, &r);
    return r;
}

tf_result tf_run(const tf_job *job)
{
    tf_result r = tf_try(job);
    OKE(r.status, &r.err);
    return r;
}

void tf_free(tf_result *r)
{
    void **place[OUTPUTS];
    places(r, place);
    for (int i = 0; i < OUTPUTS; i++) free(*place[i]);
    memset(r, 0, sizeof *r);
}

void tf_same(const tf_result *a, const tf_result *b, const char *what)
{
    static const char *const name[OUTPUTS] = {"image",      "image8",   "index",     "depth",
                                              "confidence", "mean_log", "corr_next", "kept",
                                              "stats",      "lo",       "hi"};
    tf_result x = *a, y = *b;
    void **p[OUTPUTS], **q[OUTPUTS];
    places(&x, p);
    places(&y, q);
    for (int i = 0; i < OUTPUTS; i++) {
        if (x.bytes[i] != y.bytes[i] || (*p[i] && memcmp(*p[i], *q[i], x.bytes[i]) != 0))
            FAIL("%s differs: %s", name[i], what);
    }
}

void *tf_golden(const char *file, const char *member, fth_dtype dtype, int64_t *count)
{
    fth_mem *mem = NULL;
    fth_mem_options opt;
    fth_err err = {0};
    fth_source s;
    fth_npz *npz = NULL;
    char path[256];
    const int64_t zero[FTH_MAX_AXES] = {0};
    snprintf(path, sizeof path, "tests/golden/focus/%s", file);
    fth_mem_options_default(&opt);
    OKE(fth_mem_create(&mem, &opt, &err), &err);
    if (member) {
        OKE(fth_npz_open(&npz, mem, path, &err), &err);
        OKE(fth_npz_source(npz, member, &s, &err), &err);
    } else
        OKE(fth_npy_open(&s, mem, path, &err), &err);
    EQ_STR(fth_dtype_name(s.dtype), fth_dtype_name(dtype));
    *count = 1;
    for (int i = 0; i < s.n_axes; i++) *count *= s.size[i];
    void *data = malloc((size_t)(*count * fth_dtype_size(dtype)) + 1);
    OKE(s.read(s.self, zero, s.size, data, &err), &err);
    fth_source_close(&s);
    if (npz) fth_npz_close(npz);
    OKE(fth_mem_destroy(mem, &err), &err);
    return data;
}

double tf_psnr(const uint8_t *a, const uint8_t *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const double d = (double)a[i] - (double)b[i];
        sum += d * d;
    }
    return sum > 0 ? 10 * log10(255.0 * 255.0 * (double)n / sum) : 200;
}
