/* test_growth.c - what other libraries take while a plan runs stays within their rows of
 * libraries.def, and the budget has room for it. seconds: 20
 *
 * A library takes most when it is used for the first time, so every program runs in a process of
 * its own. The rows were set from what is printed here.
 */
#include "testing/test.h"

#include "mem/inject.h"

#include <fathom/fathom.h>
#include <fathom/images.h>
#include <fathom/io.h>
#include <fathom/pictures.h>
#include <fathom/zarr.h>

#include <inttypes.h>
#include <sys/wait.h>
#include <unistd.h>

static const uint64_t MiB = 1 << 20;

typedef struct world {
    fth_context *ctx;
    fth_graph *g;
    fth_val out;
    fth_sink sink;
    fth_source source; /* to be closed; kind NULL: none */
    fth_h5_writer *writer;
} world;

/* What a process of its own found out. */
typedef struct finding {
    fth_run_report report;
    fth_plan_info info;
    uint64_t loaded; /* growth between the making of the context and the run: libraries loaded */
    fth_status status;
    fth_err err;
} finding;

typedef fth_status build_fn(world *w, fth_err *err);

/* ---- data made when asked for, and a sink that forgets ---- */

static fth_status read_f32(void *self, const int64_t *lo, const int64_t *n, void *dst, fth_err *err)
{
    (void)err;
    const fth_source *s = self;
    float *out = dst;
    int64_t count = 1;
    for (int d = 0; d < s->n_axes; d++) count *= n[d];
    for (int64_t i = 0; i < count; i++)
        out[i] = (float)((i * 7919 + lo[0] * 104729) % 1009) / 1009.0f - 0.5f;
    return FTH_OK;
}

static fth_status read_f64(void *self, const int64_t *lo, const int64_t *n, void *dst, fth_err *err)
{
    (void)err;
    const fth_source *s = self;
    double *out = dst;
    int64_t count = s->dtype == FTH_C128 ? 2 : 1;
    for (int d = 0; d < s->n_axes; d++) count *= n[d];
    for (int64_t i = 0; i < count; i++)
        out[i] = (double)((i * 7919 + lo[0] * 104729) % 1009) / 1009.0 - 0.5;
    return FTH_OK;
}

static fth_status forget(void *self, const int64_t *lo, const int64_t *n, const void *src,
                         fth_err *err)
{
    (void)self, (void)lo, (void)n, (void)src, (void)err;
    return FTH_OK;
}

static fth_val made(world *w, const char *name, fth_dtype t, const char *axes)
{
    static fth_source made_of[8]; /* outlives the run: one process, one program */
    static int used;
    fth_source *s = &made_of[used++];
    char copy[64], *save = NULL;
    snprintf(copy, sizeof copy, "%s", axes);
    *s = (fth_source){.kind = "made", .dtype = t, .read = t == FTH_F32 ? read_f32 : read_f64};
    for (char *a = strtok_r(copy, " ", &save); a; a = strtok_r(NULL, " ", &save))
        s->size[s->n_axes++] = fth_axis_size(w->g, a);
    s->self = s;
    return fth_input(w->g, name, t, axes, *s);
}

static void forget_into(world *w)
{
    w->sink = (fth_sink){.kind = "nowhere",
                         .dtype = fth_val_dtype(w->out),
                         .n_axes = fth_val_axes(w->out),
                         .write = forget};
    for (int d = 0; d < w->sink.n_axes; d++) w->sink.size[d] = fth_val_size(w->out, d);
}

/* ---- programs ---- */

static fth_status plain(world *w, fth_err *err)
{
    (void)err;
    fth_axis(w->g, "row", 200000);
    fth_axis(w->g, "col", 16);
    const fth_val v = made(w, "v", FTH_F32, "row col");
    w->out = fth_sum(fth_exp(fth_mul(v, v)), "col");
    return FTH_OK;
}

/* Into memory of the caller that nobody has touched yet: the growth is not ours. */
static fth_status in_place(world *w, fth_err *err)
{
    (void)err;
    fth_axis(w->g, "row", 8 << 20);
    w->out = fth_exp(made(w, "v", FTH_F32, "row"));
    forget_into(w);
    w->sink.write = NULL;
    w->sink.data = calloc(8 << 20, sizeof(float));
    return FTH_OK;
}

static fth_status product(world *w, fth_dtype t, int64_t m, int64_t n, int64_t k)
{
    fth_axis(w->g, "m", m);
    fth_axis(w->g, "n", n);
    fth_axis(w->g, "k", k);
    w->out = fth_dot(made(w, "a", t, "m k"), made(w, "b", t, "k n"), "k");
    return FTH_OK;
}
static fth_status dot_f32(world *w, fth_err *err)
{
    (void)err;
    return product(w, FTH_F32, 2048, 4096, 1024);
}
static fth_status dot_f64(world *w, fth_err *err)
{
    (void)err;
    return product(w, FTH_F64, 2048, 2048, 2048);
}
static fth_status dot_c128(world *w, fth_err *err)
{
    (void)err;
    return product(w, FTH_C128, 1024, 2048, 1024);
}

static fth_status factor(world *w, fth_err *err)
{
    (void)err;
    fth_axis(w->g, "i", 1200);
    fth_axis_like(w->g, "j", "i");
    fth_axis(w->g, "k", 300);
    fth_axis(w->g, "rhs", 1000);
    const fth_val a = made(w, "a", FTH_F64, "i k");
    const fth_val s = fth_dot(a, fth_rename(a, "i", "j"), "k");
    const fth_val eye = fth_cast(
        fth_eq(fth_expand(fth_index(w->g, "i"), "j"), fth_expand(fth_index(w->g, "j"), "i")),
        FTH_F64);
    const fth_val l = fth_cholesky(fth_add(s, eye), "i", "j");
    w->out = fth_solve(l, made(w, "b", FTH_F64, "i rhs"), "i", "j");
    return FTH_OK;
}

/* Many equations: BLAS packs a strip as long as the matrix. */
static fth_status solve_of(world *w, fth_dtype t, int64_t size)
{
    fth_axis(w->g, "i", size);
    fth_axis_like(w->g, "j", "i");
    fth_axis(w->g, "rhs", 64);
    const fth_val eye = fth_cast(
        fth_eq(fth_expand(fth_index(w->g, "i"), "j"), fth_expand(fth_index(w->g, "j"), "i")), t);
    const fth_val l = fth_mark(eye, FTH_LOWER, "i", "j");
    w->out = fth_solve(l, made(w, "b", t, "i rhs"), "i", "j");
    return FTH_OK;
}
static fth_status solve_f32(world *w, fth_err *err)
{
    (void)err;
    return solve_of(w, FTH_F32, 6000);
}
static fth_status solve_f64(world *w, fth_err *err)
{
    (void)err;
    return solve_of(w, FTH_F64, 4000);
}
static fth_status solve_c128(world *w, fth_err *err)
{
    (void)err;
    return solve_of(w, FTH_C128, 2500);
}

static fth_status transform(world *w, fth_dtype t, int64_t lines, int64_t points)
{
    fth_axis(w->g, "line", lines);
    fth_axis(w->g, "x", points);
    fth_axis(w->g, "f", points);
    w->out = fth_fft(made(w, "v", t, "line x"), "x", "f");
    return FTH_OK;
}
static fth_status fft_lines(world *w, fth_err *err)
{
    (void)err;
    return transform(w, FTH_C128, 256, 4096);
}
static fth_status fft_long(world *w, fth_err *err)
{
    (void)err;
    return transform(w, FTH_C128, 2, 177147);
}
static fth_status fft_prime(world *w, fth_err *err)
{
    (void)err;
    return transform(w, FTH_C128, 2, 200003);
}

static fth_status convolve(world *w, fth_dtype t)
{
    const fth_conv conv = {.y = "y",
                           .x = "x",
                           .out_y = "y",
                           .out_x = "x",
                           .chan = "c",
                           .ky = "ky",
                           .kx = "kx",
                           .stride = 1,
                           .dilation = 1,
                           .pad_y = 1,
                           .pad_x = 1};
    fth_axis(w->g, "b", 8);
    fth_axis(w->g, "c", 64);
    fth_axis(w->g, "o", 64);
    fth_axis(w->g, "y", 128);
    fth_axis(w->g, "x", 128);
    fth_axis(w->g, "ky", 3);
    fth_axis(w->g, "kx", 3);
    w->out = fth_conv2d(made(w, "v", t, "b c y x"), made(w, "w", t, "o c ky kx"), &conv);
    return FTH_OK;
}
static fth_status conv_f32(world *w, fth_err *err)
{
    (void)err;
    return convolve(w, FTH_F32);
}
static fth_status conv_f64(world *w, fth_err *err)
{
    (void)err;
    return convolve(w, FTH_F64);
}

/* From a compressed dataset to another, by chunks of 4 MiB. */
static const fth_h5_dataset table = {.name = "/v",
                                     .dtype = FTH_F32,
                                     .n_axes = 2,
                                     .size = {8192, 1024},
                                     .chunk = {1024, 1024},
                                     .gzip = 1};

static void write_table(const char *path)
{
    fth_mem *mem;
    fth_h5_writer *h5;
    fth_sink sink;
    OK(fth_mem_create(&mem, NULL, NULL));
    OK(fth_h5_create(&h5, mem, path, NULL));
    OK(fth_h5_sink(h5, &table, &sink, NULL));
    const int64_t lo[2] = {0}, n[2] = {8192, 1024};
    float *v = malloc(sizeof *v * 8192 * 1024);
    const fth_source shape = {.n_axes = 2};
    union {
        const fth_source *in;
        void *out;
    } self = {&shape};
    OK(read_f32(self.out, lo, n, v, NULL));
    OK(sink.write(sink.self, lo, n, v, NULL));
    OK(sink.commit(sink.self, NULL));
    fth_sink_close(&sink);
    OK(fth_h5_commit(h5, NULL));
    OK(fth_mem_destroy(mem, NULL));
    free(v);
}

static fth_status from_to_hdf5(world *w, fth_err *err)
{
    fth_mem *mem = fth_context_mem(w->ctx);
    fth_h5 *h5;
    fth_axis(w->g, "row", 8192);
    fth_axis(w->g, "col", 1024);
    FTH_TRY(fth_h5_open(&h5, mem, t_temp_path("in.h5"), err));
    FTH_TRY(fth_h5_source(h5, "/v", &w->source, err));
    fth_h5_close(h5);
    w->out = fth_exp(fth_input(w->g, "v", FTH_F32, "row col", w->source));
    FTH_TRY(fth_h5_create(&w->writer, mem, t_temp_path("out.h5"), err));
    return fth_h5_sink(w->writer, &table, &w->sink, err);
}

/* From chunks packed by blosc to others packed by zstd. */
static fth_zarr_array chunks(fth_zarr_packing packing)
{
    return (fth_zarr_array){.dtype = FTH_F32,
                            .n_axes = 2,
                            .size = {8192, 1024},
                            .chunk = {1024, 1024},
                            .packing = packing};
}

static void write_chunks(const char *path)
{
    const int64_t lo[2] = {0}, n[2] = {8192, 1024};
    const fth_zarr_array array = chunks(FTH_ZARR_BLOSC);
    fth_source shape = {.n_axes = 2};
    fth_mem *mem;
    fth_sink sink;
    float *v = malloc(sizeof *v * 8192 * 1024);
    OK(fth_mem_create(&mem, NULL, NULL));
    OK(read_f32(&shape, lo, n, v, NULL));
    OK(fth_zarr_create(&sink, mem, path, &array, NULL));
    OK(fth_sink_put(&sink, v, NULL));
    fth_sink_close(&sink);
    OK(fth_mem_destroy(mem, NULL));
    free(v);
}

static fth_status from_to_zarr(world *w, fth_err *err)
{
    fth_mem *mem = fth_context_mem(w->ctx);
    const fth_zarr_array array = chunks(FTH_ZARR_ZSTD);
    fth_zarr *zarr;
    fth_axis(w->g, "row", 8192);
    fth_axis(w->g, "col", 1024);
    FTH_TRY(fth_zarr_open(&zarr, mem, t_temp_path("in.zarr"), err));
    FTH_TRY(fth_zarr_source(zarr, &w->source, err));
    fth_zarr_close(zarr);
    w->out = fth_exp(fth_input(w->g, "v", FTH_F32, "row col", w->source));
    return fth_zarr_create(&w->sink, mem, t_temp_path("out.zarr"), &array, err);
}

/* From a packed picture, strip by strip or row by row. */
enum { SIDE = 4096 };

static void write_picture(const char *path, const char *kind)
{
    fth_mem *mem;
    fth_picture_format format;
    OK(fth_mem_create(&mem, NULL, NULL));
    OK(fth_picture_format_parse(kind, &format, NULL));
    uint16_t *v = malloc(sizeof *v * SIDE * SIDE);
    for (int64_t i = 0; i < (int64_t)SIDE * SIDE; i++) v[i] = (uint16_t)(i * 7919 % 65521);
    const fth_picture p = {.dtype = fth_picture_kind_get_info(format.kind)->dtype,
                           .height = SIDE,
                           .width = SIDE,
                           .channels = 1,
                           .pixels = v};
    OK(fth_picture_save(mem, path, &p, &format, NULL));
    OK(fth_mem_destroy(mem, NULL));
    free(v);
}

static fth_status from_picture(world *w, const char *path, fth_dtype t, int64_t channels,
                               fth_err *err)
{
    static const char *const axes[6] = {"t", "p", "z", "c", "y", "x"};
    fth_images *images;
    FTH_TRY(fth_images_open(&images, fth_context_mem(w->ctx), path, NULL, err));
    FTH_TRY(fth_images_source(images, &w->source, err));
    fth_images_close(images);
    for (int i = 0; i < 6; i++) fth_axis(w->g, axes[i], i < 3 ? 1 : i == 3 ? channels : SIDE);
    w->out = fth_sum(fth_cast(fth_input(w->g, "v", t, "t p z c y x", w->source), FTH_F32), "x");
    return FTH_OK;
}
static fth_status from_tiff(world *w, fth_err *err)
{
    return from_picture(w, t_temp_path("in.tif"), FTH_U16, 1, err);
}
static fth_status from_jpeg(world *w, fth_err *err)
{
    return from_picture(w, t_temp_path("in.jpg"), FTH_U8, 1, err);
}
static fth_status from_webp(world *w, fth_err *err)
{
    return from_picture(w, t_temp_path("in.webp"), FTH_U8, 3, err);
}

/* ---- one process each ---- */

static int threads = 2;

static fth_status run_all(world *w, build_fn *build, uint64_t budget, finding *f)
{
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = threads;
    opt.mem.budget_bytes = budget;
    (void)fth__mem_process_peak_reset();
    const uint64_t before = fth__mem_process_bytes();
    FTH_TRY(fth_context_create(&w->ctx, &opt, &f->err));
    w->g = fth_graph_create(w->ctx);
    FTH_TRY(build(w, &f->err));
    if (!w->sink.kind) forget_into(w);
    fth_plan *p = fth_plan_make(w->g, &w->out, 1, (&(fth_limits){.sinks = &w->sink}), &f->err);
    if (!p) return f->err.status;
    fth_plan_get_info(p, &f->info);
    const uint64_t now = fth__mem_process_bytes();
    f->loaded = now > before ? now - before : 0;
    const fth_status s = fth_run(p, &w->sink, NULL, &f->report, &f->err);
    fth_plan_destroy(p);
    return s;
}

static finding in_own_process(build_fn *build, uint64_t budget)
{
    int ends[2];
    finding f = {0};
    IS_TRUE(pipe(ends) == 0);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        world w = {0};
        f.status = run_all(&w, build, budget, &f);
        const bool sent = write(ends[1], &f, sizeof f) == (ssize_t)sizeof f;
        _exit(sent ? 0 : 1);
    }
    close(ends[1]);
    size_t got = 0;
    for (ssize_t n; (n = read(ends[0], (char *)&f + got, sizeof f - got)) > 0;) got += (size_t)n;
    close(ends[0]);
    int status = -1;
    IS_TRUE(child > 0 && waitpid(child, &status, 0) == child);
    IS_TRUE(got == sizeof f && status == 0);
    return f;
}

static double mib(uint64_t bytes)
{
    return (double)bytes / (double)MiB;
}

static void check(const char *name, build_fn *build, uint64_t budget)
{
    if (T_SANITIZED) SKIP("a sanitizer takes memory of its own");
    const finding f = in_own_process(build, budget);
    OKE(f.status, &f.err);
    const fth_run_report *r = &f.report;
    if (!r->growth_known) SKIP("the system does not tell how a process grows");
    char text[512];
    fth_run_report_format(r, text, sizeof text);
    printf("%-10s libraries took %.2f MiB and %.2f before the run, of %.2f\n%s", name,
           mib(r->growth_bytes - r->touched_bytes), mib(f.loaded), mib(r->allowance_bytes), text);
    EQ_U64(r->ledger_bytes, r->planned_bytes);
    IS_TRUE(r->kept);
    /* what was loaded while planning is the libraries' too */
    LE_F64(r->growth_bytes - r->touched_bytes + f.loaded, r->allowance_bytes);
    LE_F64(f.info.peak_bytes + f.info.allowance_bytes, budget);
    LE_F64(r->growth_bytes, budget);
}

TEST(our_own_code)
{
    check("plain", plain, 64 * MiB);
}

/* Stacks of the workers and of the threads for files are in the allowance. */
TEST(many_threads)
{
    for (threads = 1; threads <= 16; threads *= 4) check("threads", plain, 64 * MiB);
    threads = 2;
}

TEST(memory_of_the_caller_is_not_growth)
{
    check("in_place", in_place, 64 * MiB);
}

TEST(openblas)
{
    check("dot_f32", dot_f32, 64 * MiB);
    check("dot_f64", dot_f64, 192 * MiB);
    check("dot_c128", dot_c128, 192 * MiB);
    check("factor", factor, 192 * MiB);
    check("solve_f32", solve_f32, 192 * MiB);
    check("solve_f64", solve_f64, 192 * MiB);
    check("solve_c128", solve_c128, 192 * MiB);
    check("conv_f64", conv_f64, 64 * MiB);
}

TEST(transforms)
{
    check("fft_lines", fft_lines, 64 * MiB);
    check("fft_long", fft_long, 384 * MiB);
    check("fft_prime", fft_prime, 384 * MiB);
}

TEST(onednn)
{
    check("conv_f32", conv_f32, 64 * MiB);
}

TEST(hdf5)
{
    write_table(t_temp_path("in.h5"));
    check("hdf5", from_to_hdf5, 96 * MiB);
}

TEST(zarr)
{
    write_chunks(t_temp_path("in.zarr"));
    check("zarr", from_to_zarr, 128 * MiB);
}

TEST(libtiff)
{
    write_picture(t_temp_path("in.tif"), "tif16:deflate");
    check("libtiff", from_tiff, 64 * MiB);
    remove(t_temp_path("in.tif"));
}

TEST(libjpeg)
{
    write_picture(t_temp_path("in.jpg"), "jpg");
    check("libjpeg", from_jpeg, 64 * MiB);
    remove(t_temp_path("in.jpg"));
}

/* Decoded when the source is made: a run takes nothing for it. */
TEST(libwebp)
{
    if (T_SANITIZED) SKIP("a sanitizer takes memory of its own");
    write_picture(t_temp_path("in.webp"), "webp");
    const finding f = in_own_process(from_webp, 256 * MiB);
    const fth_run_report *r = &f.report;
    remove(t_temp_path("in.webp"));
    OKE(f.status, &f.err);
    if (!r->growth_known) SKIP("the system does not tell how a process grows");
    EQ_U64(r->ledger_bytes, r->planned_bytes);
    IS_TRUE(r->kept);
    LE_F64(r->growth_bytes, r->touched_bytes + r->allowance_bytes);
}

TEST(all_rows_together_are_small)
{
    LE_F64(fth_library_allowance(UINT32_MAX, 2), 32 * MiB);
    EQ_U64(fth_library_allowance(0, 2), 0);
    for (int i = 0; i < FTH_LIBRARY_COUNT; i++) {
        const fth_library_info *row = fth_library_get_info((fth_library)i);
        IS_TRUE(row->name[0] && row->why[0]);
        EQ_U64(fth_library_allowance(1u << i, 3), row->fixed_bytes + 3 * row->thread_bytes);
    }
    EQ_PTR(fth_library_get_info(FTH_LIBRARY_COUNT), NULL);
}

/* A budget of the context is for everything; a limit of a plan for its own bytes. */
TEST(the_allowance_is_inside_the_budget)
{
    fth_options opt;
    fth_err err = {0};
    world w = {0};
    fth_options_default(&opt);
    opt.threads = 2;
    opt.mem.budget_bytes = 52 * MiB;
    OKE(fth_context_create(&w.ctx, &opt, &err), &err);
    w.g = fth_graph_create(w.ctx);
    OK(product(&w, FTH_F32, 8192, 1024, 512));
    fth_plan_info info;
    fth_plan *p = fth_plan_make(w.g, &w.out, 1, NULL, &err);
    OKE(p ? FTH_OK : err.status, &err);
    fth_plan_get_info(p, &info);
    EQ_U64(info.allowance_bytes,
           fth_library_allowance(1u << FTH_LIB_FATHOM | 1u << FTH_LIB_OPENBLAS, 2));
    LE_F64(info.peak_bytes + info.allowance_bytes, 52 * MiB);
    IS_TRUE(info.chunks > 1); /* without the allowance all 50 MiB would fit */
    fth_plan_destroy(p);
    p = fth_plan_make(w.g, &w.out, 1, (&(fth_limits){.memory_bytes = 20 * MiB}), &err);
    OKE(p ? FTH_OK : err.status, &err);
    fth_plan_get_info(p, &info);
    IS_TRUE(info.peak_bytes <= 20 * MiB && info.peak_bytes + info.allowance_bytes > 20 * MiB);
    fth_plan_destroy(p);
    fth_graph_destroy(w.g);
    OKE(fth_context_destroy(w.ctx, &err), &err);
}

/* The budget that a refusal names is enough, and one byte less is not. */
TEST(what_would_fit_counts_the_allowance)
{
    uint64_t budget = 5 * MiB;
    for (int turn = 0; turn < 3; turn++) {
        fth_options opt;
        fth_err err = {0};
        world w = {0};
        fth_options_default(&opt);
        opt.threads = 2;
        opt.mem.budget_bytes = budget;
        OKE(fth_context_create(&w.ctx, &opt, &err), &err);
        w.g = fth_graph_create(w.ctx);
        OK(product(&w, FTH_F32, 2048, 1024, 512));
        fth_plan *p = fth_plan_make(w.g, &w.out, 1, NULL, &err);
        if (turn == 1) {
            OKE(p ? FTH_OK : err.status, &err);
            budget--;
        } else {
            IS_TRUE(p == NULL);
            IS(err.status, FTH_E_NO_FIT);
            HAS(err.text, "reserved for libraries: fathom 5.62 MiB, OpenBLAS 8.50 MiB");
            HAS(err.hint, "would fit: mem.budget_bytes = ");
            const uint64_t enough = strtoull(strstr(err.hint, " = ") + 3, NULL, 10);
            if (turn == 2) EQ_U64(enough, budget + 1);
            budget = enough;
        }
        fth_plan_destroy(p);
        fth_graph_destroy(w.g);
        OKE(fth_context_destroy(w.ctx, &err), &err);
    }
}

TEST(the_report_says_it_in_lines)
{
    fth_run_report r = {.planned_bytes = 3 * MiB,
                        .ledger_bytes = 3 * MiB,
                        .touched_bytes = 2 * MiB,
                        .growth_bytes = 9 * MiB,
                        .allowance_bytes = 8 * MiB,
                        .growth_known = true,
                        .seconds = 1.5,
                        .compute_seconds = 1.25,
                        .predicted_seconds = 1.375};
    char text[512];
    const size_t length = fth_run_report_format(&r, text, sizeof text);
    EQ_U64(length, strlen(text));
    EQ_STR(text,
           "ledger  3145728 bytes, planned 3145728\n"
           "pages   2.00 MiB touched of at most 4.00 MiB\n"
           "growth  9.00 MiB of at most 12.00 MiB, 8.00 MiB of it for libraries\n"
           "time    1.500 s, predicted 1.375 s; 0.250 s waiting for data; read 0 B, written 0 B\n");
    r.ledger_bytes++, r.touched_bytes = 5 * MiB, r.growth_bytes = 13 * MiB;
    fth_run_report_format(&r, text, sizeof text);
    HAS(text, "3145728: NOT AS PLANNED");
    HAS(text, "4.00 MiB: TOO MANY");
    HAS(text, "for libraries: TOO MUCH");
    r.growth_known = false;
    fth_run_report_format(&r, text, sizeof text);
    HAS(text, "growth  unknown");
}

TEST_MAIN()
