/* test_spatial_likelihood.c - the likelihood of random batches: the equations, both kinds of loops,
 * the same bits however it is cut, slopes by differences, and counts that nobody expects.
 * seconds: 10
 */
#include "testing/full.h"
#include "testing/spatial/spatial_batch.h"

enum { MOST_N = 900, MOST_D = 70, MOST_L = 20, MOST_E = 4 };

/* A random batch in memory of its own. */
typedef struct made {
    sb_batch b;
    double *f, *s, *eps, *W, *Y;
    double *df, *ds, *slope, *update;     /* room for results */
    double *df2, *ds2, *slope2, *update2; /* and for others */
} made;

static double *room(int64_t n)
{
    double *p = calloc((size_t)(n > 0 ? n : 1), sizeof *p);
    if (!p) FAIL("no memory");
    return p;
}

static made make(t_random *r, int64_t N, int64_t D, int64_t L, int64_t E, sp_mode mode,
                 double density)
{
    made m = {.f = room(L * N), .s = room(L * N), .eps = room(E * L * N), .W = room(D * L)};
    m.Y = room(N * D);
    m.df = room(L * N), m.ds = room(L * N), m.slope = room(D * L), m.update = room(D * L);
    m.df2 = room(L * N), m.ds2 = room(L * N), m.slope2 = room(D * L), m.update2 = room(D * L);
    for (int64_t i = 0; i < L * N; i++) m.f[i] = (double)(float)t_random_normal(r);
    for (int64_t i = 0; i < L * N; i++) m.s[i] = (double)(float)(0.05 + t_random_f64(r));
    for (int64_t i = 0; i < E * L * N; i++) m.eps[i] = (double)(float)t_random_normal(r);
    for (int64_t i = 0; i < D * L; i++) m.W[i] = (double)(float)t_random_f64(r);
    for (int64_t i = 0; i < N * D; i++)
        if (t_random_f64(r) < density) m.Y[i] = (double)t_random_i64(r, 1, 9);
    m.b = (sb_batch){N, D, L, E, m.f, m.s, m.eps, m.W, m.Y, mode};
    return m;
}

static void unmake(made *m)
{
    double *const all[] = {m->f,     m->s,      m->eps, m->W,   m->Y,      m->df,     m->ds,
                           m->slope, m->update, m->df2, m->ds2, m->slope2, m->update2};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static sb_values first(made *m)
{
    return (sb_values){0.0, m->df, m->ds, m->slope, m->update};
}

static sb_values second(made *m)
{
    return (sb_values){0.0, m->df2, m->ds2, m->slope2, m->update2};
}

/* Everything of two evaluations, within a tolerance. */
static void near(const made *m, const sb_values *got, const sb_values *want, double tolerance)
{
    const int64_t cells = m->b.factors * m->b.cells, genes = m->b.factors * m->b.genes;
    LE_F64(fabs(got->ell - want->ell), tolerance * (1.0 + fabs(want->ell)));
    LE_F64(sb_worst(got->df, want->df, cells), tolerance);
    LE_F64(sb_worst(got->ds, want->ds, cells), tolerance);
    LE_F64(sb_worst(got->slope, want->slope, genes), tolerance);
    LE_F64(sb_worst(got->update, want->update, genes), tolerance);
}

static void same(const made *m, const sb_values *a, const sb_values *b)
{
    const size_t cells = sizeof(double) * (size_t)(m->b.factors * m->b.cells),
                 genes = sizeof(double) * (size_t)(m->b.factors * m->b.genes);
    SAME_BYTES(&a->ell, &b->ell, sizeof a->ell);
    SAME_BYTES(a->df, b->df, cells);
    SAME_BYTES(a->ds, b->ds, cells);
    SAME_BYTES(a->slope, b->slope, genes);
    SAME_BYTES(a->update, b->update, genes);
}

TEST(random_batches_follow_the_equations)
{
    t_random r = t_random_make(1);
    for (int k = 0; k < (t_slowed() ? 6 : 60 / t_one_in(1, 4)); k++) {
        made m = make(&r, t_random_i64(&r, 1, k % 5 == 0 ? MOST_N : 60),
                      t_random_i64(&r, 1, MOST_D), t_random_i64(&r, 1, MOST_L),
                      t_random_i64(&r, 1, MOST_E), (sp_mode)(k % 3), t_random_f64(&r));
        sb_values want = second(&m), got = first(&m);
        sb_reference(&m.b, &want);
        for (int path = SP_PATH_AUTO; path <= SP_PATH_DENSE; path++) {
            sb_engine(&m.b, &(sb_how){FTH_F64, (sp_poisson_path)path, 2, 0, NULL}, &got);
            near(&m, &got, &want, 1e-12);
            sb_engine(&m.b, &(sb_how){FTH_F32, (sp_poisson_path)path, 2, 0, NULL}, &got);
            near(&m, &got, &want, 2e-5);
        }
        unmake(&m);
    }
}

/* The two paths of model 8.3 agree. */
TEST(stored_counts_and_dense_rows_agree)
{
    t_random r = t_random_make(2);
    for (int mode = 0; mode < 3; mode++) {
        made m = make(&r, 500, 40, 10, 3, (sp_mode)mode, 0.25);
        sb_values sparse = first(&m), dense = second(&m);
        sb_engine(&m.b, &(sb_how){FTH_F32, SP_PATH_SPARSE, 1, 0, NULL}, &sparse);
        sb_engine(&m.b, &(sb_how){FTH_F32, SP_PATH_DENSE, 1, 0, NULL}, &dense);
        near(&m, &sparse, &dense, 1e-6);
        IS_TRUE(memcmp(m.df, m.df2, sizeof(double) * 5000) != 0); /* they are two ways */
        unmake(&m);
    }
}

/* Above a quarter of the places the dense loops are taken, up to it the others. */
TEST(the_share_of_stored_counts_decides)
{
    t_random r = t_random_make(3);
    for (int more = 0; more < 2; more++) {
        made m = make(&r, 100, 40, 5, 2, SP_EXPANDED, 0.0);
        for (int i = 0; i < 1000 + more; i++) m.Y[(i * 37) % 4000] = 1.0 + i % 5;
        sb_values got = first(&m), other = second(&m);
        sb_engine(&m.b, &(sb_how){FTH_F32, SP_PATH_AUTO, 1, 0, NULL}, &got);
        sb_engine(&m.b, &(sb_how){FTH_F32, more ? SP_PATH_DENSE : SP_PATH_SPARSE, 1, 0, NULL},
                  &other);
        same(&m, &got, &other);
        unmake(&m);
    }
}

TEST(bits_do_not_depend_on_chunks_or_workers)
{
    t_random r = t_random_make(4);
    for (int k = 0; k < 6; k++) {
        const sp_poisson_path path = k % 2 ? SP_PATH_DENSE : SP_PATH_SPARSE;
        const fth_dtype real = k < 3 ? FTH_F32 : FTH_F64;
        made m = make(&r, 1500, 30, 6, 3, (sp_mode)(k % 3), 0.3);
        sb_values whole = first(&m), cut = second(&m);
        EQ_I64(sb_engine(&m.b, &(sb_how){real, path, 1, 0, ""}, &whole), 0);
        for (int threads = 1; threads <= 5; threads += 2) {
            sb_engine(&m.b, &(sb_how){real, path, threads, 0, ""}, &cut);
            same(&m, &cut, &whole);
            uint64_t memory =
                real == FTH_F32 ? 800000 : 1600000; /* less and less, until it is cut */
            while (sb_engine(&m.b, &(sb_how){real, path, threads, memory, "cellb"}, &cut) < 2)
                memory -= memory / 16;
            same(&m, &cut, &whole);
        }
        unmake(&m);
    }
}

/* Slopes against central differences of the value, all three modes. */
TEST(slopes_are_differences_of_the_value)
{
    t_random r = t_random_make(5);
    const sb_how how = {FTH_F64, SP_PATH_AUTO, 1, 0, NULL};
    const double h = 1e-5;
    for (int mode = 0; mode < 3; mode++) {
        made m = make(&r, 4, 5, 3, 2, (sp_mode)mode, 0.6);
        sb_values v = first(&m), up = second(&m), down = second(&m);
        sb_engine(&m.b, &how, &v);
        double *const what[] = {m.f, m.s, m.W}, *const slope[] = {m.df, m.ds, m.slope};
        const int64_t n[] = {12, 12, 15};
        for (int w = 0; w < 3; w++)
            for (int64_t i = 0; i < n[w]; i++) {
                const double x = what[w][i];
                what[w][i] = x + h;
                sb_engine(&m.b, &how, &up);
                what[w][i] = x - h;
                sb_engine(&m.b, &how, &down);
                what[w][i] = x;
                NEAR((up.ell - down.ell) / (2 * h), slope[w][i], 1e-6 * (1.0 + fabs(slope[w][i])));
            }
        unmake(&m);
    }
}

/* The update never lowers the likelihood in which it is derived: expanded and lower-bound have the
 * linear term that it divides by. */
TEST(the_update_of_the_loadings_climbs)
{
    t_random r = t_random_make(6);
    for (int mode = 0; mode < 3; mode++) {
        made m = make(&r, 80, 12, 4, 3, (sp_mode)mode, 0.5);
        double before = -(double)INFINITY;
        for (int k = 0; k < 8; k++) {
            sb_values v = first(&m);
            sb_engine(&m.b, &(sb_how){FTH_F64, SP_PATH_AUTO, 1, 0, NULL}, &v);
            IS_TRUE(v.ell > before);
            before = v.ell;
            memcpy(m.W, m.update, sizeof(double) * 48);
        }
        unmake(&m);
    }
}

/* ---- what nobody expects ---- */

static void both_paths_follow(made *m, double tolerance32)
{
    sb_values want = second(m), got = first(m);
    sb_reference(&m->b, &want);
    for (int path = SP_PATH_SPARSE; path <= SP_PATH_DENSE; path++) {
        sb_engine(&m->b, &(sb_how){FTH_F64, (sp_poisson_path)path, 2, 0, NULL}, &got);
        near(m, &got, &want, 1e-11);
        sb_engine(&m->b, &(sb_how){FTH_F32, (sp_poisson_path)path, 2, 0, NULL}, &got);
        near(m, &got, &want, tolerance32);
    }
}

TEST(empty_cells_and_genes)
{
    t_random r = t_random_make(7);
    made m = make(&r, 50, 20, 4, 2, SP_EXPANDED, 0.5);
    for (int i = 0; i < 50; i++)
        for (int d = 0; d < 20; d++)
            if (i % 3 == 0 || i > 40 || d % 4 == 1) m.Y[i * 20 + d] = 0.0;
    both_paths_follow(&m, 2e-5);
    for (int i = 0; i < 1000; i++) m.Y[i] = 0.0; /* and nothing at all */
    both_paths_follow(&m, 2e-5);
    unmake(&m);
}

TEST(fractions_and_huge_counts)
{
    t_random r = t_random_make(8);
    made m = make(&r, 40, 20, 4, 3, SP_SIMPLE, 0.5);
    for (int i = 0; i < 800; i++)
        if (m.Y[i] > 0.0)
            m.Y[i] = i % 2 ? (double)(float)t_random_f64(&r) : (double)(i % 7 == 0 ? 1000000 : 3);
    both_paths_follow(&m, 2e-5);
    unmake(&m);
}

/* Rates from 1e-36 to 1e36: below the floor there is no slope, above nothing overflows. */
TEST(factors_of_plus_and_minus_eighty)
{
    t_random r = t_random_make(9);
    for (int mode = 0; mode < 3; mode++) {
        made m = make(&r, 32, 9, 2, 2, (sp_mode)mode, 0.5);
        for (int i = 0; i < 64; i++) {
            m.f[i] = i % 32 < 16 ? -80.0 : 80.0;
            m.s[i] = 0.25;
        }
        /* the two halves differ by 70 orders of magnitude: each is compared by itself */
        for (int half = 0; half < 2; half++) {
            made part = m;
            double f[32], s[32], eps[64];
            for (int l = 0; l < 2; l++)
                for (int i = 0; i < 16; i++) {
                    f[l * 16 + i] = m.f[l * 32 + half * 16 + i];
                    s[l * 16 + i] = m.s[l * 32 + half * 16 + i];
                    for (int e = 0; e < 2; e++)
                        eps[(e * 2 + l) * 16 + i] = m.eps[(e * 2 + l) * 32 + half * 16 + i];
                }
            part.b = (sb_batch){
                16, 9, 2, 2, f, s, eps, m.W, m.Y + (ptrdiff_t)half * 16 * 9, (sp_mode)mode};
            both_paths_follow(&part, 2e-5);
            if (half == 0) EQ_F64(m.update[0], (double)1e-8f); /* W times nothing: its floor */
        }
        unmake(&m);
    }
}

TEST(loadings_of_zero)
{
    t_random r = t_random_make(10);
    made m = make(&r, 20, 10, 3, 2, SP_EXPANDED, 0.7);
    for (int l = 0; l < 3; l++) m.W[4 * 3 + l] = m.W[7 * 3 + l] = 0.0; /* rates of 0 */
    both_paths_follow(&m, 2e-5);
    unmake(&m);
}

/* NaN in a factor must reach the value: a run that went wrong is told by it. */
TEST(nan_is_not_hidden)
{
    t_random r = t_random_make(11);
    for (int path = SP_PATH_SPARSE; path <= SP_PATH_DENSE; path++)
        for (int mode = 0; mode < 3; mode++) {
            made m = make(&r, 20, 10, 3, 2, (sp_mode)mode, 0.9);
            sb_values v = first(&m);
            if (mode == SP_EXPANDED) { /* then the linear term has none, only the rates have */
                m.eps[7] = (double)NAN;
                sb_engine(&m.b, &(sb_how){FTH_F32, (sp_poisson_path)path, 1, 0, NULL}, &v);
                IS_TRUE(isnan(v.ell));
            }
            m.f[7] = (double)NAN;
            sb_engine(&m.b, &(sb_how){FTH_F32, (sp_poisson_path)path, 1, 0, NULL}, &v);
            IS_TRUE(isnan(v.ell));
            IS_TRUE(isnan(m.df[7]));
            IS_TRUE(!isnan(m.df[8]));
            IS_TRUE(isnan(m.slope[0]));
            unmake(&m);
        }
}

/* ---- loops of all instruction sets ---- */

enum { CELLS = 37, GENES = 45, FACTORS = 11, DRAWS = 3 };

static void loops_at(int level, fth_dtype real, bool dense, bool update, t_random r, void *out)
{
    const sp_poisson_loops *loops = sp_poisson_at(level, real);
    const sp_poisson_loops *base = sp_poisson_at(1, real);
    const size_t size = (size_t)fth_dtype_size(real);
    const int64_t numbers = DRAWS * FACTORS * CELLS;
    double *phi = room(numbers), *eps = room(numbers), *W = room(GENES * FACTORS);
    double *work = room(sp_poisson_work(GENES, FACTORS, DRAWS));
    double *turned = room(sp_poisson_part(GENES, FACTORS));
    int64_t row_ptr[CELLS + 1] = {0};
    int32_t gene[CELLS * GENES];
    float value[CELLS * GENES];
    for (int64_t i = 0; i < numbers; i++) {
        const double x = exp(t_random_normal(&r)), e = t_random_normal(&r);
        if (real == FTH_F32)
            ((float *)phi)[i] = (float)x, ((float *)eps)[i] = (float)e;
        else
            phi[i] = x, eps[i] = e;
    }
    for (int64_t i = 0; i < GENES * FACTORS; i++) {
        const double x = t_random_f64(&r) < 0.01 ? 0.0 : t_random_f64(&r);
        if (real == FTH_F32)
            ((float *)W)[i] = (float)x;
        else
            W[i] = x;
    }
    for (int64_t i = 0, at = 0; i < CELLS; i++) {
        for (int32_t d = 0; d < GENES; d++)
            if (t_random_f64(&r) < 0.4) {
                gene[at] = d;
                value[at++] = (float)t_random_i64(&r, 1, 50);
            }
        row_ptr[i + 1] = at;
    }
    sp_poisson_piece p = {row_ptr,         gene,  value,           W,     FACTORS, phi,   eps,
                          FACTORS * CELLS, CELLS, FACTORS * CELLS, CELLS, CELLS,   GENES, FACTORS,
                          DRAWS,           dense, update,          turned};
    EQ_I64(loops->lanes, base->lanes);
    if (dense) loops->turn(turned, &p);
    char *to = out;
    loops->cells(&p,
                 &(sp_poisson_out){(double *)(void *)to, to + 8 * CELLS,
                                   to + 8 * CELLS + size * CELLS * FACTORS, CELLS, CELLS},
                 work);
    loops->genes(&p, to + 8 * CELLS + 2 * size * CELLS * FACTORS, work);
    double *const all[] = {phi, eps, W, work, turned};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

TEST(every_instruction_set_gives_the_same_bits)
{
    const int64_t n = CELLS + 2 * CELLS * FACTORS + sp_poisson_part(GENES, FACTORS);
    double *one = room(n), *other = room(n);
    for (int k = 0; k < 8; k++)
        for (int level = 3; level <= 4; level++) {
            const fth_dtype real = k & 1 ? FTH_F64 : FTH_F32;
            if (!sp_poisson_at(level, real)) continue;
            memset(one, 0, sizeof *one * (size_t)n);
            memset(other, 0, sizeof *other * (size_t)n);
            loops_at(1, real, k & 2, k & 4, t_random_make(20), one);
            loops_at(level, real, k & 2, k & 4, t_random_make(20), other);
            SAME_BYTES(one, other, sizeof *one * (size_t)n);
        }
    IS_TRUE(one[0] != 0.0);
    free(one);
    free(other);
}

TEST_MAIN()
