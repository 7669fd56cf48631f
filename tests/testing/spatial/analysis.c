/* analysis.c - the two analyses of spatial factor models, and what their tests share. */
#include "testing/spatial/analysis.h"

#include <inttypes.h>
#include <sys/wait.h>

/* ---- made numbers ---------------------------------------------------------------------------- */

static uint64_t mixed(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static fth_status read_made(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    (void)err;
    const a_made *m = self;
    int64_t at[FTH_MAX_AXES] = {0}, k = 0;
    const int last = m->n_axes - 1;
    ++*m->reads;
    for (;;) {
        int64_t i = 0;
        for (int d = 0; d < m->n_axes; d++) i = i * m->size[d] + lo[d] + at[d];
        const uint64_t bits = mixed((uint64_t)i + 1);
        const bool zero = m->lower && lo[last] + at[last] > lo[last - 1] + at[last - 1];
        if (m->below > 0)
            ((int64_t *)dst)[k++] = (int64_t)(bits % (uint64_t)m->below);
        else
            ((float *)dst)[k++] =
                zero ? 0.0f : (float)(((double)(bits >> 40) / 0x1p24 - 0.5) * m->scale);
        int d = last;
        while (d >= 0 && ++at[d] == n[d]) at[d--] = 0;
        if (d < 0) return FTH_OK;
    }
}

static fth_val input(analysis *a, int which, const char *name, const char *axes, a_made made)
{
    a_made *m = &a->made[which];
    fth_axis_id id[FTH_MAX_AXES];
    *m = made;
    m->reads = &a->reads;
    OK(fth_axes_parse(a->g, axes, &m->n_axes, id, NULL));
    for (int i = 0; i < m->n_axes; i++)
        m->size[i] = fth_axis_size(a->g, fth_axis_name(a->g, id[i]));
    const fth_dtype t = made.below > 0 ? FTH_I64 : FTH_F32;
    fth_source s = {.kind = "made", .self = m, .dtype = t, .n_axes = m->n_axes, .read = read_made};
    memcpy(s.size, m->size, sizeof s.size);
    return fth_input(a->g, name, t, axes, s);
}

/* ---- the models ------------------------------------------------------------------------------ */

/* exp(-|a-b|^2 / 2) */
static fth_val bell(fth_val a, fth_val b)
{
    const fth_val d = fth_sub(a, b);
    return fth_exp(fth_mul(fth_sum(fth_sqr(d), "dim"), fth_const(a.graph, FTH_F32, -0.5)));
}

static fth_val diagonal(fth_graph *g, const char *row, const char *col, double value)
{
    const fth_val on =
        fth_eq(fth_expand(fth_index(g, col), row), fth_expand(fth_index(g, row), col));
    return fth_mul(fth_cast(on, FTH_F32), fth_const(g, FTH_F32, value));
}

void a_svgp(analysis *a, fth_context *ctx, int64_t cells, int64_t inducing, int64_t factors)
{
    *a = (analysis){.g = fth_graph_create(ctx), .factors = factors, .cells = cells};
    fth_axis(a->g, "cell", cells);
    fth_axis(a->g, "induce", inducing);
    fth_axis_like(a->g, "induce2", "induce");
    fth_axis(a->g, "factor", factors);
    fth_axis(a->g, "dim", 2);
    const fth_val X = input(a, 0, "X", "cell dim", (a_made){.scale = 40.0});
    const fth_val Z = input(a, 1, "Z", "induce dim", (a_made){.scale = 40.0});
    const fth_val Lu =
        input(a, 2, "Lu", "factor induce induce2", (a_made){.scale = 0.1, .lower = true});
    const fth_val mu = input(a, 3, "mu", "factor induce", (a_made){.scale = 1.0});
    const fth_val Z2 = fth_rename(Z, "induce", "induce2");
    const fth_val Kzz = fth_add(bell(fth_expand(Z2, "induce"), fth_expand(Z, "induce2")),
                                diagonal(a->g, "induce", "induce2", 1e-2));
    const fth_val Kzx = bell(fth_expand(X, "induce"), fth_expand(Z, "cell"));
    const fth_val L = fth_label(fth_cholesky(Kzz, "induce", "induce2"), "L");
    const fth_val Y = fth_solve(L, Kzx, "induce", "induce2");
    const fth_val W = fth_label(fth_solve_t(L, Y, "induce", "induce2"), "W");
    a->out[0] = fth_label(fth_dot(W, mu, "induce"), "F");
    a->out[1] = fth_label(fth_sum(fth_sqr(fth_dot(W, Lu, "induce")), "induce2"), "S");
}

void a_lcgp(analysis *a, fth_context *ctx, int64_t cells, int64_t near, int64_t factors)
{
    *a = (analysis){.g = fth_graph_create(ctx), .factors = factors, .cells = cells};
    fth_axis(a->g, "cell", cells);
    fth_axis_like(a->g, "point", "cell");
    fth_axis(a->g, "near", near);
    fth_axis_like(a->g, "near2", "near");
    fth_axis(a->g, "factor", factors);
    fth_axis(a->g, "dim", 2);
    const fth_val P = input(a, 0, "P", "point dim", (a_made){.scale = 40.0});
    const fth_val index = input(a, 1, "neighbours", "cell near", (a_made){.below = cells});
    const fth_val mu = input(a, 2, "mu", "factor point", (a_made){.scale = 1.0});
    const fth_val rate = fth_add(fth_abs(input(a, 3, "rate", "factor", (a_made){.scale = 1.0})),
                                 fth_const(a->g, FTH_F32, 0.5));
    const fth_val N = fth_gather(P, "point", index); /* [cell near dim] */
    const fth_val N2 = fth_rename(N, "near", "near2");
    const fth_val between =
        fth_sum(fth_sqr(fth_sub(fth_expand(N2, "near"), fth_expand(N, "near2"))), "dim");
    const fth_val here = fth_rename(P, "point", "cell");
    const fth_val to = fth_sum(fth_sqr(fth_sub(N, here)), "dim"); /* [cell near] */
    const fth_val K =
        fth_label(fth_add(fth_exp(fth_neg(fth_mul(fth_expand(between, "factor"), rate))),
                          diagonal(a->g, "near", "near2", 0.1)),
                  "K");
    const fth_val k = fth_exp(fth_neg(fth_mul(fth_expand(to, "factor"), rate)));
    const fth_val L = fth_label(fth_cholesky(K, "near", "near2"), "L");
    const fth_val y = fth_solve(L, k, "near", "near2"); /* [factor cell near2] */
    const fth_val w = fth_solve_t(L, y, "near", "near2");
    a->out[0] = fth_label(fth_sum(fth_mul(w, fth_gather(mu, "point", index)), "near"), "F");
    a->out[1] =
        fth_label(fth_sub(fth_const(a->g, FTH_F32, 1.0), fth_sum(fth_sqr(y), "near2")), "S");
}

void a_free(analysis *a)
{
    fth_graph_destroy(a->g);
    a->g = NULL;
}

/* ---- results --------------------------------------------------------------------------------- */

static fth_status write_digest(void *self, const int64_t *lo, const int64_t *n, const void *src,
                               fth_err *err)
{
    (void)err;
    a_digest *d = self;
    const float *v = src;
    for (int64_t i = 0; i < n[0]; i++)
        for (int64_t j = 0; j < n[1]; j++, v++) {
            uint32_t bits;
            memcpy(&bits, v, sizeof bits);
            const uint64_t at = (uint64_t)((lo[0] + i) * d->cells + lo[1] + j);
            d->hash += mixed((at << 32) ^ bits);
            d->sum += (double)*v;
        }
    d->elements += n[0] * n[1];
    return FTH_OK;
}

fth_sink a_digest_sink(a_digest *d, const analysis *a)
{
    *d = (a_digest){.factors = a->factors, .cells = a->cells};
    return (fth_sink){.kind = "digest",
                      .self = d,
                      .dtype = FTH_F32,
                      .n_axes = 2,
                      .size = {d->factors, d->cells},
                      .write = write_digest};
}

const char *a_plan_json(const fth_plan *p, const char *name)
{
    const char *path = t_temp_path(name);
    FILE *f = fopen(path, "w");
    IS_TRUE(f != NULL);
    OK(fth_plan_print_json(p, f));
    fclose(f);
    return path;
}

void a_simulate(const char *paths)
{
    char command[8192];
    const char *python = getenv("FATHOM_PYTHON");
    const int n = snprintf(command, sizeof command, "%s tests/python/plan_simulator.py %s",
                           python ? python : "/usr/bin/python3", paths);
    IS_TRUE(n > 0 && n < (int)sizeof command);
    const int rc = system(command);
    EQ_I64(WIFEXITED(rc) ? WEXITSTATUS(rc) : -1, 0);
}

uint64_t a_smallest(analysis *a, int threads)
{
    fth_err err = {0};
    unsigned long long bytes = 0;
    fth_plan *p = fth_plan_make(a->g, a->out, 2,
                                (&(fth_limits){.memory_bytes = 1, .threads = threads}), &err);
    IS_TRUE(p == NULL);
    IS(err.status, FTH_E_NO_FIT);
    EQ_I64(sscanf(err.hint, "would fit: memory_bytes = %llu", &bytes), 1);
    return bytes;
}
