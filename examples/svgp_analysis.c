/* svgp_analysis.c - the posterior of a sparse GP factor model, inside a memory budget.
 *
 * seconds: 10
 * usage: svgp_analysis [cells] [inducing] [factors] [budget] [--plan] [--json] [--threads N]
 *
 * For cells X, inducing points Z and a factor Lu of the variational covariance, the mean and the
 * variance of every factor at every cell are
 *     W = K(Z,Z)^-1 K(Z,X),   F = W^T mu,   S = sum_k (W^T Lu)_k^2.
 * Written plainly, W^T Lu alone is factors x cells x inducing numbers. Here nobody cuts anything
 * by hand: the program says what it wants, and the plan says what that takes.
 */
#include <fathom/fathom.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- data: a source that makes its numbers when asked, so that nothing is held
 * ------------------- */

typedef struct made {
    int n_axes;
    int64_t size[3];
    double scale;
    bool lower; /* zero above the diagonal of the last two axes */
} made;

static float number_at(uint64_t i, double scale)
{
    uint64_t x = i * 0x9e3779b97f4a7c15u + 0x1234567u;
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    return (float)(((double)(x >> 11) * 0x1p-53 - 0.5) * scale);
}

static fth_status read_made(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    (void)err;
    const made *m = self;
    float *out = dst;
    int64_t at[3] = {0, 0, 0}, from[3] = {0, 0, 0}, len[3] = {1, 1, 1}, size[3] = {1, 1, 1};
    for (int d = 0; d < m->n_axes; d++) {
        from[3 - m->n_axes + d] = lo[d];
        len[3 - m->n_axes + d] = n[d];
        size[3 - m->n_axes + d] = m->size[d];
    }
    for (at[0] = 0; at[0] < len[0]; at[0]++)
        for (at[1] = 0; at[1] < len[1]; at[1]++)
            for (at[2] = 0; at[2] < len[2]; at[2]++) {
                const int64_t r = from[1] + at[1], c = from[2] + at[2];
                const int64_t i = ((from[0] + at[0]) * size[1] + r) * size[2] + c;
                *out++ = m->lower && c > r ? 0.0f : number_at((uint64_t)i, m->scale);
            }
    return FTH_OK;
}

static fth_source made_source(made *m)
{
    fth_source s = {
        .kind = "made", .self = m, .dtype = FTH_F32, .n_axes = m->n_axes, .read = read_made};
    memcpy(s.size, m->size, sizeof m->size);
    return s;
}

/* ---- results: a sink that remembers a hash and the extremes
 * ----------------------------------------- */

typedef struct digest {
    int64_t factors, cells;
    uint64_t hash; /* a sum over elements: does not depend on the order of writes */
    double sum;
} digest;

static fth_status write_digest(void *self, const int64_t *lo, const int64_t *n, const void *src,
                               fth_err *err)
{
    (void)err;
    digest *d = self;
    const float *v = src;
    for (int64_t i = 0; i < n[0]; i++)
        for (int64_t j = 0; j < n[1]; j++, v++) {
            uint32_t bits;
            memcpy(&bits, v, sizeof bits);
            const uint64_t at = (uint64_t)((lo[0] + i) * d->cells + lo[1] + j);
            d->hash += (at * 2 + 1) * (bits * 0x9e3779b97f4a7c15u + 1);
            d->sum += (double)*v;
        }
    return FTH_OK;
}

static fth_sink digest_sink(digest *d)
{
    return (fth_sink){.kind = "digest",
                      .self = d,
                      .dtype = FTH_F32,
                      .n_axes = 2,
                      .size = {d->factors, d->cells},
                      .write = write_digest};
}

/* ---- the model
 * ----------------------------------------------------------------------------------------- */

/* exp(-|a-b|^2 / 2) between the rows of a and b, [axis of a, axis of b] */
static fth_val kernel(fth_val a, const char *a_axis, fth_val b, const char *b_axis)
{
    const fth_val d = fth_sub(fth_expand(b, a_axis), fth_expand(a, b_axis));
    return fth_exp(fth_mul(fth_sum(fth_sqr(d), "dim"), fth_const(a.graph, FTH_F32, -0.5)));
}

/* K(Z,Z)^-1 K(Z,X), [induce cell] */
static fth_val gp_weights(fth_val X, fth_val Z)
{
    fth_graph *g = X.graph;
    const fth_val diagonal = fth_eq(fth_expand(fth_index(g, "induce2"), "induce"),
                                    fth_expand(fth_index(g, "induce"), "induce2"));
    const fth_val jitter = fth_mul(fth_cast(diagonal, FTH_F32), fth_const(g, FTH_F32, 1e-2));
    const fth_val Kzz =
        fth_add(kernel(Z, "induce", fth_rename(Z, "induce", "induce2"), "induce2"), jitter);
    const fth_val L = fth_label(fth_cholesky(Kzz, "induce", "induce2"), "L");
    const fth_val Y = fth_solve(L, kernel(Z, "induce", X, "cell"), "induce", "induce2");
    return fth_label(fth_solve_t(L, Y, "induce", "induce2"), "W");
}

typedef struct arguments {
    int64_t cells, inducing, factors;
    const char *budget;
    bool plan_only, json;
    int threads;
} arguments;

static arguments parse(int argc, char **argv)
{
    arguments a = {.cells = 7366, .inducing = 500, .factors = 12};
    int place = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--plan") == 0)
            a.plan_only = true;
        else if (strcmp(argv[i], "--json") == 0)
            a.plan_only = a.json = true;
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            a.threads = atoi(argv[++i]);
        else if (place == 3)
            a.budget = argv[i];
        else
            (place == 0   ? &a.cells
             : place == 1 ? &a.inducing
                          : &a.factors)[0] = atoll(argv[i]),
                            place++;
    }
    return a;
}

static fth_status analyse(fth_context *ctx, const arguments *a, fth_err *err)
{
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "cell", a->cells);
    fth_axis(g, "induce", a->inducing);
    fth_axis_like(g, "induce2", "induce");
    fth_axis(g, "factor", a->factors);
    fth_axis(g, "dim", 2);
    made x = {2, {a->cells, 2}, 40.0, false}, z = {2, {a->inducing, 2}, 40.0, false};
    made lu = {3, {a->factors, a->inducing, a->inducing}, 0.1, true},
         mu = {2, {a->factors, a->inducing}, 1.0, false};
    const fth_val X = fth_input(g, "X", FTH_F32, "cell dim", made_source(&x));
    const fth_val Z = fth_input(g, "Z", FTH_F32, "induce dim", made_source(&z));
    const fth_val Lu = fth_input(g, "Lu", FTH_F32, "factor induce induce2", made_source(&lu));
    const fth_val Mu = fth_input(g, "mu", FTH_F32, "factor induce", made_source(&mu));
    const fth_val W = gp_weights(X, Z);
    const fth_val F = fth_label(fth_dot(W, Mu, "induce"), "F");
    const fth_val S = fth_label(fth_sum(fth_sqr(fth_dot(W, Lu, "induce")), "induce2"), "S");

    fth_plan *p = fth_plan_make(g, ((fth_val[]){F, S}), 2, &(fth_limits){0}, err);
    fth_status s = p ? FTH_OK : err->status;
    if (p && a->json) fth_plan_print_json(p, stdout);
    if (p && !a->json) fth_plan_print(p, stdout);
    if (p && !a->plan_only) {
        digest f = {.factors = a->factors, .cells = a->cells}, v = f;
        fth_run_report report;
        s = fth_run(p, (fth_sink[]){digest_sink(&f), digest_sink(&v)}, NULL, &report, err);
        printf("F %016" PRIx64 " sum %.6g\nS %016" PRIx64 " sum %.6g\n", f.hash, f.sum, v.hash,
               v.sum);
        char lines[512];
        fth_run_report_format(&report, lines, sizeof lines);
        fputs(lines, stdout);
    }
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    return s;
}

int main(int argc, char **argv)
{
    const arguments a = parse(argc, argv);
    fth_err err = {0};
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = a.threads;
    fth_context *ctx = NULL;
    fth_status s = FTH_OK;
    if (a.budget) s = fth_mem_parse_size(a.budget, fth_mem_free_now(), &opt.mem.budget_bytes, &err);
    if (s == FTH_OK) s = fth_context_create(&ctx, &opt, &err);
    if (s == FTH_OK) s = analyse(ctx, &a, &err);
    const fth_status closed = fth_context_destroy(ctx, &err);
    if (s == FTH_OK) s = closed;
    if (s != FTH_OK) {
        char text[4096];
        fth_err_format(&err, text, sizeof text);
        fprintf(stderr, "%s\n", text);
    }
    return fth_status_get_info(s)->exit_code * (s != FTH_OK);
}
