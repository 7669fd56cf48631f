/* test_winograd.c - the loops of every instruction set: transforms to the same bits, products to
 * the same bits where there is an fma. seconds: 2
 */
#include "cpu/winograd.h"
#include "testing/full.h"

enum { TILES = 37, STEP = 64, M = 13, N = 64, K = 45, PLANE = N * M, ROOM = 16 * PLANE };

typedef struct made {
    float lines[4 * STEP], image[ROOM], slope[ROOM], rows[2][2 * TILES], window[16 * 32],
        window_slope[9 * 32], product[N * M], sum[N * M];
} made;

static float in[4][4 * STEP], a[64 * M], b[N * K];

static void run(const fth__winograd_loops *l, made *m)
{
    memset(m, 0, sizeof *m);
    const fth__winograd_row from = {m->image + 2 * 32, PLANE, M * 32, 7};
    l->along(m->lines, STEP, in[0], TILES);
    for (int k = 0; k < 4; k++) /* beyond the tiles each set writes what it likes */
        memset(m->lines + k * STEP + TILES, 0, sizeof(float) * (STEP - TILES));
    l->image(&from, (const float *const[4]){in[0], in[1], in[2], in[3]}, STEP, TILES);
    l->slope(&(fth__winograd_row){m->slope, PLANE, M * 32, 0},
             (const float *const[2]){in[0], in[1]}, TILES);
    l->result((float *const[2]){m->rows[0], m->rows[1]}, &from, TILES);
    l->window(m->window, 32, &in[0][0]);
    l->window_slope(m->window_slope, &in[0][0], 32);
    l->product(M, N, K, a, b, m->product, false);
    memcpy(m->sum, m->product, sizeof m->sum);
    l->product(M, N, K, a, b, m->sum, true);
}

TEST(every_set_agrees)
{
    t_random r = t_random_make(5);
    for (int i = 0; i < 16 * STEP; i++) (&in[0][0])[i] = (float)t_random_i64(&r, -1000, 1000) / 997;
    for (int i = 0; i < 64 * M; i++) a[i] = (float)t_random_i64(&r, -1000, 1000) / 997;
    for (int i = 0; i < N * K; i++) b[i] = (float)t_random_i64(&r, -1000, 1000) / 997;
    made *base = malloc(sizeof *base), *other = malloc(sizeof *other);
    made *first = NULL;
    IS_TRUE(base && other);
    run(FTH_ISA_AT(fth__winograd_loops, 1), base);
    for (int level = 3; level <= 4; level++) {
        const fth__winograd_loops *l = FTH_ISA_AT(fth__winograd_loops, level);
        if (!l) continue;
        run(l, other);
        SAME_BYTES(other, base, offsetof(made, product));
        for (int i = 0; i < N * M; i++) {
            NEAR(other->product[i], base->product[i], 1e-5);
            NEAR(other->sum[i], 2 * base->product[i], 2e-5);
        }
        if (first)
            SAME_BYTES(other->product, first->product, sizeof first->product);
        else
            IS_TRUE((first = malloc(sizeof *first)) && memcpy(first, other, sizeof *first));
    }
    free(first), free(base), free(other);
}

/* a b, one element at a time. */
TEST(products)
{
    t_random r = t_random_make(6);
    for (int i = 0; i < 64 * M; i++) a[i] = (float)t_random_i64(&r, -9, 9);
    for (int i = 0; i < N * K; i++) b[i] = (float)t_random_i64(&r, -9, 9);
    static float c[N * M];
    FTH_ISA_BEST(fth__winograd_loops)->product(M, N, K, a, b, c, false);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            float sum = 0;
            for (int k = 0; k < K; k++)
                sum += a[(k / 32 * M + i) * 32 + k % 32] * b[(j / 32 * K + k) * 32 + j % 32];
            EQ_F64(c[(j / 32 * M + i) * 32 + j % 32], sum);
        }
}

TEST_MAIN()
