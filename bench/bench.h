/* bench.h - what the cases of fathom-bench share: arrays, a planned program, timed pairs, one line.
 *
 * A case prepares its arrays, plans its program, and hands both sides to bench_pairs: ours and the
 * peer take turns, each pair gives one ratio, and the line says whether the lower quartile of the
 * ratios reaches the bar. Memory comes from the system: this is a user of the library, not a part.
 */
#ifndef FATHOM_BENCH_H
#define FATHOM_BENCH_H

#include <fathom/fathom.h>

typedef struct bench {
    const char *filter;  /* part of a case's name; NULL: all */
    const char *peers;   /* folder of the peers in Python */
    const char *device;  /* cases of this device alone; NULL: those of the CPU */
    const char *backend; /* its shared object; NULL: found */
    const char *trace;   /* folder of timelines; NULL: cases are timed */
    const char *cache;   /* folder of compiled kernels; NULL: they are not kept */
    const char *rates;   /* folder of measured rates; NULL: predictions stand on built-in ones */
    int64_t divide;      /* sizes of the cases of a device, to try them without one */
    int64_t stacks;      /* of the plate of focus_run */
    int pairs;
    bool json, cpu_clock;
    int lines, failed;
    double add_rate[3];     /* GB/s of z = x + y by threads, once measured */
    double gemm_rate[2][3]; /* Gflop/s of OpenBLAS, f32 and f64 */
} bench;

bool bench_wants(const bench *b, const char *name);
/* Seconds by the clock that was asked for: wall time, or time of the processors per thread. */
double bench_now(const bench *b, int threads);

/* ---- a program of the library ---- */

enum { BENCH_OUTS = 8, BENCH_IN = 16 };
typedef struct bench_program {
    fth_context *ctx;
    fth_graph *g;
    fth_plan *plan;
    int n_out;
    fth_val out[BENCH_OUTS];
    fth_sink sink[BENCH_OUTS];
    int n_tensor;
    fth_tensor *tensor[BENCH_IN + BENCH_OUTS];
    fth_err err;
    fth_status status; /* first failure; later calls do nothing */
    uint64_t planned, measured;
    fth_run_report report; /* of the latest run */
    fth_plan_info info;
} bench_program;

void bench_open(bench_program *p, int threads);
void bench_open_on(bench_program *p, int threads, const char *device);
/* On the device of the bench, with at most so many bytes there; 0: all of them. */
void bench_open_within(bench_program *p, const bench *b, uint64_t device_bytes);
/* Memory of ours, used in place, with the sizes of the axes. */
fth_val bench_input(bench_program *p, const char *name, fth_dtype dtype, const char *axes,
                    void *data);
void bench_output(bench_program *p, fth_val v, void *data);
/* A parameter of uniform random numbers, which stays on the device; with LOWER, zero where
 * the last axis but one is before the last. */
fth_val bench_param(bench_program *p, const char *name, fth_dtype dtype, const char *axes,
                    fth_triangle t);
/* A parameter with the contents of an array of the host, which is not read later. */
fth_val bench_param_of(bench_program *p, const char *name, fth_dtype dtype, const char *axes,
                       void *data);
/* The same with a heavy diagonal of the last two axes: what Cholesky takes. */
fth_val bench_definite(bench_program *p, const char *name, fth_dtype dtype, const char *axes);
void bench_assign(bench_program *p, fth_val param, fth_val v);
/* Plan (memory_bytes 0: no limit) and run once, filling planned and measured. */
void bench_plan(bench_program *p, uint64_t memory_bytes, bool in_place);
void bench_go(bench_program *p);
/* The same; seconds of the host until all of it was done. Those of the kernels alone, by marks of
 * the device before the first and after the last, are in report.device_seconds. */
double bench_go_timed(bench_program *p, const bench *b);
/* Prints what went wrong, if anything; true when all went well. */
bool bench_close(bench_program *p);

/* ---- predicted seconds: --predict ---- */

/* From now on what bench_plan planned is run against its prediction, and pairs are not. */
void bench_predict_on(const bench *b);
bool bench_predicting(void);
/* Programs that are opened from now on have the measured rates of --rates. */
void bench_predict_by(bool measured);
const char *bench_predict_rates(void); /* NULL: built-in ones */
void bench_predict_name(const char *name);
/* `first`: seconds of the first run. */
void bench_predicted(bench_program *p, double first);
void bench_predict_end(void);

/* ---- arrays ---- */

void *bench_array(uint64_t bytes); /* aligned, touched, zero; ends the program when there is none */
void bench_fill_f32(float *v, int64_t n, uint64_t seed, float lo, float hi);
void bench_fill_f64(double *v, int64_t n, uint64_t seed, double lo, double hi);
double bench_diff_f32(const float *a, const float *b, int64_t n); /* largest |a-b| / largest |b| */
double bench_diff_f64(const double *a, const double *b, int64_t n);

/* ---- pairs ---- */

typedef struct bench_pair {
    const char *name, *shape, *peer_name;
    int threads;
    double amount; /* of work in one run, in 1e9 `unit`s */
    const char *unit;
    double limit; /* `unit`s per second nothing can pass, in 1e9; 0: not known */
    double bar;   /* seconds of the peer / ours that must be reached */
    void (*ours)(void *arg);
    const char *device; /* NULL: processors */
    /* On a device, beside the seconds of the host: those of the kernels of the latest call of ours,
     * and of the peer's, by the device's clock; 0: not known. NULL: not asked. */
    double (*ours_kernels)(void *arg), (*peer_kernels)(void *arg);
    int turns, pairs;          /* 0: the usual */
    double (*peer)(void *arg); /* its own seconds, or a negative number to be timed from outside */
    double (*residual)(void *arg); /* NULL: none */
    void *arg;
    uint64_t planned, measured;
} bench_pair;
/* Returns the peer's median seconds on a device, its best ones elsewhere. */
double bench_pairs(bench *b, const bench_pair *pair);
/* A line without a peer: n times in seconds (at most 100) against a bound. */
void bench_single(bench *b, const char *name, const char *shape, const double *seconds, int n,
                  double bound, const char *what);
void bench_note(const bench *b, const char *fmt, ...) FTH_PRINTF(2, 3);

/* ---- limits of this machine, measured once ---- */

double bench_add_rate(bench *b, int threads);                   /* GB/s */
double bench_gemm_rate(bench *b, fth_dtype dtype, int threads); /* Gflop/s */

/* ---- cases of a device (device.h) ---- */

void bench_device(bench *b);

/* ---- cases and peers, one file each ---- */

void bench_predict(bench *b);
void bench_predict_held(bench *b);
void bench_oneshot(bench *b);
void bench_elementwise(bench *b);
void bench_filter(bench *b);
void bench_sharpest(bench *b);
void bench_order(bench *b);
void bench_product(bench *b);
void bench_matvec(bench *b);
void bench_places(bench *b);
void bench_cholesky(bench *b);
void bench_fft(bench *b);
void bench_conv(bench *b);
void bench_streaming(bench *b);
void bench_reading(bench *b);
void bench_splat_load(bench *b);
void bench_splat_blend(bench *b);
void bench_planning(bench *b);
void bench_figures(bench *b);
void bench_bragg(bench *b);
void bench_bragg_device(bench *b);
void bench_spatial_likelihood(bench *b);
void bench_spatial(bench *b);
void bench_spatial_local(bench *b);
void bench_spatial_places(bench *b);
void bench_spatial_device(bench *b);
void bench_splat_device(bench *b);
void bench_splat_update_device(bench *b);
void bench_splat_look_device(bench *b);
void bench_splat_densify_device(bench *b);
void bench_ptycho(bench *b);
void bench_ptycho_device(bench *b);
void bench_ptycho_net(bench *b);
void bench_ptycho_net_device(bench *b);
void bench_focus(bench *b);
void bench_focus_run(bench *b);
void bench_focus_device(bench *b);

void peer_add(const float *x, const float *y, float *z, int64_t n, int threads);
/* Multiply-adds on registers, `gflop` of them on each thread; a number that depends on all. */
double peer_fma(double gflop, int threads);
void peer_chain(const float *x, const float *y, float *z, int64_t n);
void peer_gemm(fth_dtype dtype, int m, int n, int k, const void *a, const void *b, void *c,
               int threads);
int peer_potrf(fth_dtype dtype, int n, void *a, int threads);
/* Transforms of `batch` arrays that follow each other, forward: complex ones, or real ones to half
 * spectra. */
typedef struct peer_fft_shape {
    int rank, n[3], batch;
    bool real, wide; /* wide: f64 */
    int threads;
} peer_fft_shape;
typedef struct peer_fft peer_fft;
/* FFTW with a measured plan, or MKL. NULL with a reason where the library is not found. `from` and
 * `to` lose what they have. */
peer_fft *peer_fftw_make(const peer_fft_shape *shape, void *from, void *to, const char **why);
peer_fft *peer_mkl_make(const peer_fft_shape *shape, void *from, void *to, const char **why);
void peer_fft_run(peer_fft *p);
void peer_fft_drop(peer_fft *p);
typedef struct peer_conv {
    int batch, in, out, y, x, k, pad;
    float *src, *weight, *dst;
} peer_conv;
typedef struct peer_conv_plan peer_conv_plan;
/* NULL with a reason when oneDNN is not there. */
peer_conv_plan *peer_conv_make(const peer_conv *c, int threads, const char **why);
void peer_conv_run(peer_conv_plan *p);
void peer_conv_drop(peer_conv_plan *p);
/* A script of the folder with these arguments, NULL after the last, run once already. NULL with a
 * reason when it does not start. */
typedef struct peer_python peer_python;
peer_python *peer_python_start(const char *folder, const char *script, const char *const *arg,
                               const char **why);
/* The same with the python3 that PATH has. */
peer_python *peer_python_start_any(const char *folder, const char *script, const char *const *arg,
                                   const char **why);
double peer_python_run(peer_python *p);                    /* seconds by its own clock */
double peer_python_tell(peer_python *p, const char *line); /* another word than "go"; likewise */
uint64_t peer_python_bytes(const peer_python *p); /* it grew by at most; 0: it does not say */
double peer_python_kernels(const peer_python *p); /* of those seconds, a device's; 0: likewise */
void peer_python_stop(peer_python *p);
/* The pair of a program and its peer, or a note that the peer is not there (NULL: why); then both
 * are stopped. */
void bench_against_python(bench *b, const bench_pair *pair, bench_program *p, peer_python *peer,
                          const char *why);

#endif
