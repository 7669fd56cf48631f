/* test_focus_lap_pyr.c - fusion by a Laplacian pyramid against golden images, a statement in f64,
 * and itself in other budgets. seconds: 2
 * labels: gpu
 */
#include "instruments/focus/ops/lap_pyr.h"
#include "testing/engine/op_harness.h"
#include "testing/focus/focus_stack.h"

/* ---- the method in f64, with whole arrays ---- */

typedef struct plane {
    int64_t y, x;
    double *v;
} plane;

static plane plane_make(int64_t y, int64_t x)
{
    return (plane){y, x, calloc((size_t)(y * x), sizeof(double))};
}

static double get(const plane *p, int64_t y, int64_t x)
{
    return p->v[fo_border_at(y, p->y, FO_BORDER_REFLECT101) * p->x +
                fo_border_at(x, p->x, FO_BORDER_REFLECT101)];
}

static plane blur(const plane *p, double gain)
{
    static const double w[5] = {1 / 16.0, 4 / 16.0, 6 / 16.0, 4 / 16.0, 1 / 16.0};
    plane out = plane_make(p->y, p->x);
    for (int64_t y = 0; y < p->y; y++)
        for (int64_t x = 0; x < p->x; x++)
            for (int i = 0; i < 25; i++)
                out.v[y * p->x + x] +=
                    gain * w[i / 5] * w[i % 5] * get(p, y + i / 5 - 2, x + i % 5 - 2);
    return out;
}

static plane down(const plane *p)
{
    plane b = blur(p, 1), out = plane_make((p->y + 1) / 2, (p->x + 1) / 2);
    for (int64_t y = 0; y < out.y; y++)
        for (int64_t x = 0; x < out.x; x++) out.v[y * out.x + x] = b.v[2 * y * p->x + 2 * x];
    free(b.v);
    return out;
}

static plane up(const plane *q, int64_t y, int64_t x)
{
    plane wide = plane_make(y, x);
    for (int64_t i = 0; i < q->y; i++)
        for (int64_t k = 0; k < q->x; k++) wide.v[2 * i * x + 2 * k] = q->v[i * q->x + k];
    plane out = blur(&wide, 4);
    free(wide.v);
    return out;
}

static double box(const plane *p, int64_t y, int64_t x, int window)
{
    double sum = 0;
    for (int i = 0; i < window * window; i++) {
        const double v = get(p, y + i / window - window / 2, x + i % window - window / 2);
        sum += v * v;
    }
    return sum;
}

enum { LEVELS = 4, PLANES = 8 };

/* One stack; `gap` gets the smallest relative difference between the best and second energy that
 * decided anything: below rounding, two answers are right. */
static plane fuse(const plane *in, int planes, const bool *kept, const fo_fusion *how, double *gap)
{
    plane g[PLANES][LEVELS + 1], detail[PLANES][LEVELS], image;
    int n = 0;
    for (int64_t least = in->y < in->x ? in->y : in->x; least >= 8 && n < how->levels; least /= 2)
        n++;
    for (int z = 0; z < planes; z++) {
        g[z][0] = in[z];
        for (int l = 0; l < n; l++) {
            g[z][l + 1] = down(&g[z][l]);
            detail[z][l] = up(&g[z][l + 1], g[z][l].y, g[z][l].x);
            for (int64_t i = 0; i < g[z][l].y * g[z][l].x; i++)
                detail[z][l].v[i] = g[z][l].v[i] - detail[z][l].v[i];
        }
    }
    image = plane_make(g[0][n].y, g[0][n].x);
    for (int64_t i = 0; i < image.y * image.x; i++) {
        double count = 0, best = -1, second = -1;
        for (int z = 0; z < planes; z++) {
            if (!kept[z]) continue;
            if (how->base == FO_BASE_MEAN || n == 0) {
                image.v[i] += g[z][n].v[i];
                count++;
                continue;
            }
            const double e =
                box(&detail[z][n - 1], 2 * (i / image.x), 2 * (i % image.x), how->window);
            if (e > best)
                second = best, best = e, image.v[i] = g[z][n].v[i];
            else if (e > second)
                second = e;
        }
        if (count > 0) image.v[i] /= count;
        if (best > 0 && second > 0) *gap = fmin(*gap, (best - second) / best);
    }
    for (int l = n - 1; l >= 0; l--) {
        plane out = up(&image, g[0][l].y, g[0][l].x);
        for (int64_t i = 0; i < out.y * out.x; i++) {
            double best = -1, second = -1, chosen = 0;
            for (int z = 0; z < planes; z++) {
                if (!kept[z]) continue;
                const double e = box(&detail[z][l], i / out.x, i % out.x, how->window);
                if (e > best)
                    second = best, best = e, chosen = detail[z][l].v[i];
                else if (e > second)
                    second = e;
            }
            out.v[i] += chosen;
            if (best > 0 && second > 0) *gap = fmin(*gap, (best - second) / best);
        }
        free(image.v);
        image = out;
    }
    for (int z = 0; z < planes; z++)
        for (int l = 0; l < n; l++) free(g[z][l + 1].v), free(detail[z][l].v);
    return image;
}

/* ---- cases ---- */

TEST(golden_image_and_quality)
{
    uint16_t *stack = t_golden("stack_u16.npy", NULL, GOLDEN_Z * GOLDEN_AREA * 2);
    float *golden = t_golden("lap_pyr_n4_win3.npy", NULL, GOLDEN_AREA * 4);
    static float image[GOLDEN_AREA];
    static double wide[GOLDEN_AREA];
    const t_stack t = {{1, GOLDEN_Z, GOLDEN_Y, GOLDEN_X}, FTH_U16, stack, NULL};
    static const struct {
        int window;
        bool clamp;
        double psnr;
    } rows[] = {{1, false, 35.136}, {1, true, 37.1},    {3, false, 40.3},
                {3, true, 40.158},  {5, false, 40.235}, {5, true, 40.097}};
    for (int i = 0; i < 6; i++) {
        fo_fusion how = t_fusion(FO_LAP_PYR);
        how.window = rows[i].window;
        how.clamp = rows[i].clamp;
        t_fuse(&t, fo_lap_pyr, &how, (t_limits){0}, image, NULL);
        for (int k = 0; k < GOLDEN_AREA; k++) wide[k] = (double)image[k];
        LE_F64(rows[i].psnr - 0.0006, t_psnr(wide));
        if (i == 2)
            for (int k = 0; k < GOLDEN_AREA; k++) NEAR(image[k], golden[k], 0.05);
        if (rows[i].clamp)
            for (int k = 0; k < GOLDEN_AREA; k++) {
                uint16_t low = 65535, high = 0;
                for (int z = 0; z < GOLDEN_Z; z++) {
                    const uint16_t v = stack[z * GOLDEN_AREA + k];
                    low = v < low ? v : low;
                    high = v > high ? v : high;
                }
                IS_TRUE(image[k] >= low && image[k] <= high);
            }
    }
    free(stack);
    free(golden);
}

static void one_random(t_random *r)
{
    const int64_t y = t_random_i64(r, 2, 40), x = t_random_i64(r, 2, 40);
    const int planes = (int)t_random_i64(r, 2, PLANES);
    fo_fusion how = t_fusion(FO_LAP_PYR);
    how.levels = (int)t_random_i64(r, 1, LEVELS);
    how.window = (int)t_random_i64(r, 0, 3) * 2 + 1;
    how.base = t_random_i64(r, 0, 1) ? FO_BASE_MEAN : FO_BASE_MAX;
    float *data = malloc((size_t)(planes * y * x) * sizeof *data), *image;
    image = malloc((size_t)(y * x) * sizeof *image);
    plane in[PLANES] = {0}; /* gcc cannot see that there are at least two */
    bool kept[PLANES];
    uint8_t mask[PLANES];
    for (int z = 0; z < planes; z++) {
        in[z] = plane_make(y, x);
        kept[z] = z == 0 || t_random_i64(r, 0, 4) > 0;
        mask[z] = kept[z] ? 3 : 0;
        for (int64_t i = 0; i < y * x; i++) {
            data[z * y * x + i] = (float)(1000 * t_random_f64(r));
            in[z].v[i] = (double)data[z * y * x + i];
        }
    }
    const t_stack t = {{1, planes, y, x}, FTH_F32, data, mask};
    double gap = 1;
    plane want = fuse(in, planes, kept, &how, &gap);
    t_fuse(&t, fo_lap_pyr, &how, (t_limits){0}, image, NULL);
    for (int64_t i = 0; gap > 1e-5 && i < y * x; i++) NEAR(image[i], want.v[i], 0.01);
    for (int z = 0; z < planes; z++) free(in[z].v);
    free(want.v);
    free(data);
    free(image);
}

TEST(any_size_is_the_statement_in_f64)
{
    t_random r = t_random_make(1);
    for (int i = 0; i < (t_slowed() ? 3 : 40); i++) one_random(&r);
}

/* Every operation keeps its bits however it is cut, on every device. */
TEST(operations_can_be_cut_anywhere)
{
    static const char *const sizes[] = {"stack=2 z=3 y=17 x=13", "stack=1 z=4 y=33 x=40",
                                        "stack=2 z=2 y=9 x=64"};
    static const fth_dtype dtypes[] = {FTH_U16, FTH_F32, FTH_U8};
    t_random r = t_random_make(2);
    for (int i = 0; i < 3; i++) {
        fth_graph *g = t_graph(sizes[i]);
        const fth_val stacks = t_noise(g, "stacks", dtypes[i], "stack z y x", &r);
        const fth_val kept = t_noise(g, "kept", FTH_U8, "stack z", &r);
        fo_fusion how = t_fusion(FO_LAP_PYR);
        how.base = i == 1 ? FO_BASE_MAX : FO_BASE_MEAN;
        how.window = 2 * i + 1;
        how.clamp = i == 2;
        ((uint8_t *)t_data(kept))[0] = 1;
        const fth_val v = fo_lap_pyr(g, stacks, kept, &how).value;
        MADE(v);
        float *out = malloc((size_t)t_count(v) * sizeof *out);
        t_eval(v, out);
        free(out);
        t_graph_free(g);
    }
}

TEST(every_instruction_set_has_the_same_bits)
{
    enum { N = 77, ROOM = N + 40 };
    t_random r = t_random_make(3);
    float in[5][ROOM], want[3][ROOM], got[3][ROOM];
    const fo_lap_loops *plain = FTH_ISA_AT(fo_lap_loops, 1);
    for (int i = 0; i < 5; i++) t_random_fill_f32(&r, in[i], ROOM);
    const float *const rows[5] = {in[0] + 8, in[1] + 8, in[2] + 8, in[3] + 8, in[4] + 8};
    for (int level = 1; level <= 4; level++) {
        const fo_lap_loops *l = FTH_ISA_AT(fo_lap_loops, level);
        if (!l) continue;
        for (int64_t n = 0; n <= N; n++) {
            for (int k = 0; k < 2; k++) {
                const fo_lap_loops *run = k ? l : plain;
                float(*o)[ROOM] = k ? got : want;
                memset(o, 0, sizeof want);
                run->down_rows(o[0] + 8, rows, n);
                run->down_columns(o[1] + 8, rows[0], n / 2);
                run->up_even(o[2] + 8, rows, n);
                run->up_columns(o[0] + 8, o[2] + 8, n);
                run->detail(o[1] + 8, o[2] + 8, rows[0], rows[1], n);
                for (int window = 1; window <= 7; window += 2) {
                    run->box_columns(o[0] + 8, rows[2], window, n);
                    run->best(o[1] + 8, o[2] + 8, o[0] + 8, rows[3], n);
                }
                run->box_rows(o[0] + 8, rows, 5, n);
                run->add(o[2] + 8, o[0] + 8, o[1] + 8, n);
            }
            SAME_BYTES(got, want, sizeof want);
        }
    }
}

/* Budgets, threads and pieces of z change no byte. */
TEST(same_bytes_in_any_budget)
{
    enum { S = 2, Z = 5, Y = 150, X = 131 };
    static uint16_t stack[S * Z * Y * X];
    static float want[S * Y * X], got[S * Y * X];
    uint8_t kept[S * Z] = {1, 1, 0, 1, 1, 1, 1, 1, 1, 0};
    t_random r = t_random_make(4);
    for (int i = 0; i < S * Z * Y * X; i++) stack[i] = (uint16_t)t_random_i64(&r, 0, 65535);
    const t_stack t = {{S, Z, Y, X}, FTH_U16, stack, kept};
    const fo_fusion how = t_fusion(FO_LAP_PYR);
    static const t_limits limits[] = {{.threads = 2},
                                      {.resident = true},
                                      {.memory = 7168 << 10},
                                      {.memory = 6624 << 10, .threads = 2},
                                      {.device = true}};
    t_fuse(&t, fo_lap_pyr, &how, (t_limits){0}, want, NULL);
    for (int i = 0; i < 5; i++) {
        memset(got, 0, sizeof got);
        t_fuse(&t, fo_lap_pyr, &how, limits[i], got, NULL);
        SAME_BYTES(got, want, sizeof want);
    }
}

TEST(one_plane_is_copied_and_constants_stay)
{
    static uint16_t stack[3 * 20 * 24];
    static float image[20 * 24];
    for (int i = 0; i < 3 * 20 * 24; i++) stack[i] = (uint16_t)(i * 37);
    const fo_fusion how = t_fusion(FO_LAP_PYR);
    t_fuse(&(t_stack){{1, 1, 20, 24}, FTH_U16, stack, NULL}, fo_lap_pyr, &how, (t_limits){0}, image,
           NULL);
    for (int i = 0; i < 20 * 24; i++) EQ_F64(image[i], stack[i]);
    for (int i = 0; i < 3 * 20 * 24; i++) stack[i] = 777;
    t_fuse(&(t_stack){{1, 3, 20, 24}, FTH_U16, stack, NULL}, fo_lap_pyr, &how, (t_limits){0}, image,
           NULL);
    for (int i = 0; i < 20 * 24; i++) EQ_F64(image[i], 777);
}

/* A plane that does not exist may hold anything. */
TEST(missing_planes_are_never_chosen)
{
    enum { Z = 4, Y = 30, X = 26, AREA = Y * X };
    static uint16_t stack[Z * AREA], fewer[(Z - 1) * AREA];
    static float want[AREA], got[AREA];
    t_random r = t_random_make(5);
    for (int i = 0; i < Z * AREA; i++)
        stack[i] =
            (uint16_t)(i / AREA == 1 ? t_random_i64(&r, 0, 65535) : t_random_i64(&r, 400, 500));
    memcpy(fewer, stack, AREA * sizeof *stack);
    memcpy(fewer + AREA, stack + 2 * AREA, 2 * AREA * sizeof *stack);
    const uint8_t kept[Z] = {1, 0, 1, 1};
    for (int i = 0; i < 4; i++) {
        fo_fusion how = t_fusion(FO_LAP_PYR);
        how.base = i % 2 ? FO_BASE_MAX : FO_BASE_MEAN;
        how.clamp = i / 2;
        t_fuse(&(t_stack){{1, Z, Y, X}, FTH_U16, stack, kept}, fo_lap_pyr, &how, (t_limits){0}, got,
               NULL);
        t_fuse(&(t_stack){{1, Z - 1, Y, X}, FTH_U16, fewer, NULL}, fo_lap_pyr, &how, (t_limits){0},
               want, NULL);
        SAME_BYTES(got, want, sizeof want);
    }
}

/* Of a plate's stack, and of one with ten times as many planes: memory does not grow with them. */
TEST(a_stack_of_a_plate_fits_in_64_MiB)
{
    fth_err err = {0};
    OKE(t_fuse_plan((int64_t[]){1, 17, 2189, 1152}, FTH_U16, FO_LAP_PYR, (uint64_t)64 << 20, &err),
        &err);
    OKE(t_fuse_plan((int64_t[]){1, 170, 2189, 1152}, FTH_U16, FO_LAP_PYR, (uint64_t)64 << 20, &err),
        &err);
    IS(t_fuse_plan((int64_t[]){1, 17, 2189, 1152}, FTH_U16, FO_LAP_PYR, 6 << 20, &err),
       FTH_E_NO_FIT);
}

TEST(mistakes_are_told)
{
    fth_graph *g = t_graph("stack=1 z=2 y=16 x=16 a=5");
    t_random r = t_random_make(6);
    const fth_val stacks = t_noise(g, "stacks", FTH_U16, "stack z y x", &r);
    const fth_val kept = t_noise(g, "kept", FTH_U8, "stack z", &r);
    const fth_val wide = t_noise(g, "wide", FTH_F64, "stack z y x", &r);
    fo_fusion how = t_fusion(FO_LAP_PYR);
    how.window = 4;
    IS_TRUE(!fth_val_ok(fo_lap_pyr(g, stacks, kept, &how).value));
    REFUSED(g, FTH_E_GRAPH_ATTR, "a window of 4");
    fth_graph_clear_errors(g);
    how.window = 3;
    IS_TRUE(!fth_val_ok(fo_lap_pyr(g, wide, kept, &how).value));
    REFUSED(g, FTH_E_DTYPE_OP, "focus_lap_down");
    fth_graph_clear_errors(g);
    IS_TRUE(!fth_val_ok(fo_lap_pyr(g, stacks, wide, &how).value));
    t_graph_free(g);
}

TEST_MAIN()
