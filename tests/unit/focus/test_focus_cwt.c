/* test_focus_cwt.c - fusion by complex wavelets against golden arrays, a statement in f64, and
 * itself in other budgets. seconds: 3
 * labels: gpu
 */
#include "instruments/focus/ops/cwt.h"
#include "instruments/focus/ops/nearest.h"
#include "testing/engine/op_harness.h"
#include "testing/focus/focus_stack.h"

#include <complex.h>

/* ---- the method in f64, with whole arrays ---- */

typedef double complex number;
static number low(int j)
{
    static const double re[3] = {-0.0662912607, 0.1104854346, 0.6629126074};
    static const double im[3] = {-0.0855816496, -0.0855816496, 0.1711632992};
    const int k = j < 3 ? j : 5 - j;
    return re[k] + im[k] * (number)I;
}

static number high(int j)
{
    return (j % 2 ? -1 : 1) * conj(low(5 - j));
}

enum { LONGEST = 256 };

/* One line of n samples, `step` apart, in place. */
static void analyse(number *v, int64_t n, int64_t step)
{
    number out[LONGEST] = {0};
    for (int64_t i = 0; i < n / 2; i++)
        for (int j = 0; j < 6; j++) {
            const number x = v[((2 * i + j - 3 + 8 * n) % n) * step];
            out[i] += low(j) * x;
            out[n / 2 + i] += high(j) * x;
        }
    for (int64_t i = 0; i < n; i++) v[i * step] = out[i];
}

static void synthesise(number *v, int64_t n, int64_t step)
{
    number out[LONGEST] = {0};
    for (int64_t i = 0; i < n / 2; i++)
        for (int j = 0; j < 6; j++)
            out[(2 * i + j - 3 + 8 * n) % n] +=
                conj(low(j)) * v[i * step] + conj(high(j)) * v[(n / 2 + i) * step];
    for (int64_t i = 0; i < n; i++) v[i * step] = out[i];
}

typedef struct shape {
    int64_t y, x, rows, cols; /* of the image, and padded */
    int levels, pad;
} shape;

static shape shape_of(int64_t y, int64_t x, int levels, int pad)
{
    shape s = {.y = y, .x = x, .pad = pad};
    const int64_t rows = y + 2 * pad, cols = x + 2 * pad;
    for (int64_t least = rows < cols ? rows : cols; least >= 2 && s.levels < levels; least /= 2)
        s.levels++;
    const int64_t unit = (int64_t)1 << s.levels;
    s.rows = (rows + unit - 1) / unit * unit;
    s.cols = (cols + unit - 1) / unit * unit;
    return s;
}

static void forward(const shape *s, number *v)
{
    for (int l = 0; l < s->levels; l++) {
        for (int64_t x = 0; x < s->cols >> l; x++) analyse(v + x, s->rows >> l, s->cols);
        for (int64_t y = 0; y < s->rows >> l; y++) analyse(v + y * s->cols, s->cols >> l, 1);
    }
}

static void backward(const shape *s, number *v)
{
    for (int l = s->levels - 1; l >= 0; l--) {
        for (int64_t y = 0; y < s->rows >> l; y++) synthesise(v + y * s->cols, s->cols >> l, 1);
        for (int64_t x = 0; x < s->cols >> l; x++) synthesise(v + x, s->rows >> l, s->cols);
    }
}

/* Where band b (low-high, high-high, high-low) of level l begins. */
static int64_t band_at(const shape *s, int l, int b)
{
    return (b > 0 ? (s->rows >> l) / 2 : 0) * s->cols + (b < 2 ? (s->cols >> l) / 2 : 0);
}

enum { PLANES = 6 };

static int most_named(const int *plane, const shape *s, int64_t rows, int64_t cols, int64_t y,
                      int64_t x)
{
    int votes[PLANES] = {0}, best = -1;
    for (int i = 0; i < 9; i++) {
        const int64_t v = fo_border_at(y + i / 3 - 1, rows, FO_BORDER_REPLICATE);
        const int64_t u = fo_border_at(x + i % 3 - 1, cols, FO_BORDER_REPLICATE);
        const int z = plane[v * s->cols + u];
        if (z >= 0) votes[z]++;
    }
    for (int z = 0; z < PLANES; z++)
        if (votes[z] > 0 && (best < 0 || votes[z] > votes[best])) best = z;
    return best;
}

static void vote(const shape *s, int consistency, int *plane)
{
    int *old = malloc((size_t)(s->rows * s->cols) * sizeof *old);
    for (int l = 0; l < s->levels; l++) {
        const int64_t rows = (s->rows >> l) / 2, cols = (s->cols >> l) / 2;
        for (int64_t i = 0; consistency >= 1 && i < rows * cols; i++) {
            int *p[3], was[3];
            for (int b = 0; b < 3; b++) {
                p[b] = plane + band_at(s, l, b) + i / cols * s->cols + i % cols;
                was[b] = *p[b];
            }
            for (int b = 0; b < 3; b++)
                if (was[(b + 1) % 3] == was[(b + 2) % 3] && was[(b + 1) % 3] >= 0)
                    *p[b] = was[(b + 1) % 3];
        }
        memcpy(old, plane, (size_t)(s->rows * s->cols) * sizeof *old);
        for (int b = 0; consistency >= 2 && b < 3; b++)
            for (int64_t i = 0; i < rows * cols; i++)
                plane[band_at(s, l, b) + i / cols * s->cols + i % cols] =
                    most_named(old + band_at(s, l, b), s, rows, cols, i / cols, i % cols);
    }
    free(old);
}

/* One stack of `planes`; false: two energies are so near that both answers are right. */
static bool fuse(const double *in, int planes, const uint8_t *kept, bool integers,
                 const fo_fusion *how, const shape *s, double *image)
{
    const int64_t area = s->rows * s->cols;
    number *c = calloc((size_t)(planes * area), sizeof *c),
           *out = calloc((size_t)area, sizeof *out);
    int *plane = malloc((size_t)area * sizeof *plane), first = -1, n = 0;
    double peak = 0;
    bool sure = true;
    for (int z = 0; z < planes; z++) {
        for (int64_t i = 0; i < area; i++)
            c[z * area + i] =
                in[(z * s->y + fo_border_at(i / s->cols - s->pad, s->y, FO_BORDER_MIRROR)) * s->x +
                   fo_border_at(i % s->cols - s->pad, s->x, FO_BORDER_MIRROR)];
        forward(s, c + z * area);
        if (kept[z] && first < 0) first = z;
        n += kept[z] != 0;
        for (int64_t i = 0; z == 0 && i < area; i++) peak = fmax(peak, cabs(c[i]));
    }
    const double floor = integers ? 0.1 : 1e-6 * peak;
    for (int64_t i = 0; i < area; i++) {
        double best = 0, second = 0;
        plane[i] = -1;
        for (int z = 0; z < planes; z++) {
            const double e = cabs(c[z * area + i]);
            if (!kept[z] || e < floor) continue;
            if (e > best)
                second = best, best = e, plane[i] = z;
            else if (e > second)
                second = e;
        }
        if (best > 0 && best - second < 2e-6 * peak) sure = false;
    }
    vote(s, how->consistency, plane);
    for (int64_t i = 0; i < area; i++) out[i] = c[(plane[i] < 0 ? first : plane[i]) * area + i];
    for (int64_t i = 0; how->base == FO_BASE_MEAN && i < area >> (2 * s->levels); i++) {
        const int64_t cols = s->cols >> s->levels, at = i / cols * s->cols + i % cols;
        out[at] = 0;
        for (int z = 0; z < planes; z++)
            if (kept[z]) out[at] += c[z * area + at] / n;
    }
    backward(s, out);
    for (int64_t i = 0; i < s->y * s->x; i++)
        image[i] = creal(out[(i / s->x + s->pad) * s->cols + i % s->x + s->pad]);
    free(c);
    free(out);
    free(plane);
    return sure;
}

/* ---- cases ---- */

/* The attributes of level l of a shape, with axes y0, x0, y1, .. that the graph has. */
static fo_cwt_attr attr_of(const fth_graph *g, const shape *s, int l)
{
    char y[16], x[16];
    snprintf(y, sizeof y, "y%d", l + 1);
    snprintf(x, sizeof x, "x%d", l + 1);
    return (fo_cwt_attr){.rows = s->rows >> l,
                         .cols = s->cols >> l,
                         .pad = s->pad,
                         .part = fth_axis_find(g, "part"),
                         .band = fth_axis_find(g, "band"),
                         .y = fth_axis_find(g, y),
                         .x = fth_axis_find(g, x)};
}

TEST(golden_transform)
{
    uint16_t *stack = t_golden("stack_u16.npy", NULL, GOLDEN_Z * GOLDEN_AREA * 2);
    float *golden[2] = {t_golden("cwt_plane3_n4.npz", "re", GOLDEN_AREA * 4),
                        t_golden("cwt_plane3_n4.npz", "im", GOLDEN_AREA * 4)};
    fth_graph *g =
        t_graph("stack=1 z=1 y=96 x=80 part=2 band=3 y1=48 x1=40 y2=24 x2=20 y3=12 x3=10 "
                "y4=6 x4=5");
    const shape s = shape_of(GOLDEN_Y, GOLDEN_X, 4, 0);
    static uint16_t zeros[3 * GOLDEN_AREA];
    static float got[6 * GOLDEN_AREA];
    double most = 0;
    t_cuts(2);
    for (int i = 0; i < GOLDEN_AREA; i++)
        most = fmax(most, hypot((double)golden[0][i], (double)golden[1][i]));
    fth_val level = t_input(g, "plane", FTH_U16, "stack z y x", stack + 3 * GOLDEN_AREA);
    for (int l = 0; l < 4; l++) {
        const fo_cwt_attr attr = attr_of(g, &s, l);
        const int64_t rows = s.rows >> (l + 1), cols = s.cols >> (l + 1);
        char name[32], axes[64];
        snprintf(name, sizeof name, "chosen%d", l);
        snprintf(axes, sizeof axes, "stack band y%d x%d", l + 1, l + 1);
        const fth_val chosen = t_input(g, name, FTH_U16, axes, zeros);
        t_eval(fth_custom(g, &fo_cwt_pick_op, 2, ((fth_val[]){level, chosen}), &attr, sizeof attr),
               got);
        for (int b = 0; b < 3; b++)
            for (int64_t i = 0; i < 2 * rows * cols; i++) {
                const int64_t part = i / (rows * cols), at = i % (rows * cols);
                NEAR(got[2 * b * rows * cols + i],
                     golden[part][band_at(&s, l, b) + at / cols * s.cols + at % cols], 1e-5 * most);
            }
        level = fth_custom(g, &fo_cwt_low_op, 1, &level, &attr, sizeof attr);
    }
    t_eval(level, got);
    for (int i = 0; i < 60; i++)
        NEAR(got[i], golden[i / 30][i % 30 / 5 * GOLDEN_X + i % 5], 1e-5 * most);
    t_graph_free(g);
    free(stack);
    for (int i = 0; i < 2; i++) free(golden[i]);
}

/* Vanishing coefficients have no vote: in the golden arrays rounding chose for them. */
TEST(golden_images_and_quality)
{
    uint16_t *stack = t_golden("stack_u16.npy", NULL, GOLDEN_Z * GOLDEN_AREA * 2);
    float *fused = t_golden("cwt_fused_n4.npz", "fused", GOLDEN_AREA * 4);
    uint16_t *reassigned = t_golden("cwt_fused_n4.npz", "reassigned", GOLDEN_AREA * 2);
    uint8_t *plane = t_golden("cwt_fused_n4.npz", "reassign_idx", GOLDEN_AREA);
    static float image[GOLDEN_AREA];
    static uint16_t measured[GOLDEN_AREA], index[GOLDEN_AREA];
    static double wide[GOLDEN_AREA];
    const t_stack t = {{1, GOLDEN_Z, GOLDEN_Y, GOLDEN_X}, FTH_U16, stack, NULL};
    static const struct {
        int pad, consistency;
        fo_base base;
        double psnr, reassigned;
    } rows[] = {{0, 2, FO_BASE_MAX, 31.771, 32.269},
                {16, 0, FO_BASE_MAX, 37.502, 38.357},
                {16, 1, FO_BASE_MAX, 37.201, 37.82},
                {16, 2, FO_BASE_MAX, 36.994 - 0.03, 37.766 - 0.06},
                {16, 0, FO_BASE_MEAN, 37.884, 38.67}};
    for (int i = 0; i < 5; i++) {
        fo_fusion how = t_fusion(FO_CWT);
        how.pad = rows[i].pad;
        how.consistency = rows[i].consistency;
        how.base = rows[i].base;
        how.no_reassign = true;
        t_fuse(&t, fo_cwt, &how, (t_limits){0}, image, NULL);
        for (int k = 0; k < GOLDEN_AREA; k++) wide[k] = (double)image[k];
        LE_F64(rows[i].psnr - 0.0006, t_psnr(wide));
        how.no_reassign = false;
        t_fuse(&t, fo_cwt, &how, (t_limits){0}, measured, index);
        for (int k = 0; k < GOLDEN_AREA; k++) wide[k] = measured[k];
        LE_F64(rows[i].reassigned - 0.0006, t_psnr(wide));
        for (int k = 0; k < GOLDEN_AREA; k++)
            EQ_I64(measured[k], stack[index[k] * GOLDEN_AREA + k]);
        if (i != 3) continue;
        int near = 0, same = 0, planes = 0;
        for (int k = 0; k < GOLDEN_AREA; k++) {
            near += fabs((double)image[k] - (double)fused[k]) <= 0.5;
            same += measured[k] == reassigned[k];
            planes += index[k] == plane[k];
        }
        LE_F64(0.95 * GOLDEN_AREA, near);
        LE_F64(0.995 * GOLDEN_AREA, same);
        LE_F64(0.995 * GOLDEN_AREA, planes);
    }
    free(stack);
    free(fused);
    free(reassigned);
    free(plane);
}

static bool one_random(t_random *r)
{
    const int planes = (int)t_random_i64(r, 2, PLANES);
    const int64_t y = t_random_i64(r, 2, 40), x = t_random_i64(r, 2, 40);
    const bool integers = t_random_i64(r, 0, 1);
    fo_fusion how = t_fusion(FO_CWT);
    how.levels = (int)t_random_i64(r, 1, 4);
    how.pad = (int)t_random_i64(r, 0, 2) * 8;
    how.consistency = (int)t_random_i64(r, 0, 2);
    how.base = t_random_i64(r, 0, 1) ? FO_BASE_MEAN : FO_BASE_MAX;
    how.no_reassign = true;
    const int64_t n = planes * y * x;
    double *wide = malloc((size_t)n * sizeof *wide), *want = malloc((size_t)(y * x) * sizeof *want);
    float *floats = malloc((size_t)n * sizeof *floats),
          *got = malloc((size_t)(y * x) * sizeof *got);
    uint8_t *bytes = malloc((size_t)n), kept[PLANES];
    for (int64_t i = 0; i < n; i++) {
        bytes[i] = (uint8_t)t_random_i64(r, 0, 255);
        floats[i] = (float)(3e4 * t_random_f64(r));
        wide[i] = integers ? bytes[i] : (double)floats[i];
    }
    for (int z = 0; z < planes; z++) kept[z] = z == planes - 1 || t_random_i64(r, 0, 4) > 0;
    const t_stack t = {{1, planes, y, x},
                       integers ? FTH_U8 : FTH_F32,
                       integers ? (const void *)bytes : floats,
                       kept};
    const shape s = shape_of(y, x, how.levels, how.pad);
    const bool sure = fuse(wide, planes, kept, integers, &how, &s, want);
    t_fuse(&t, fo_cwt, &how, (t_limits){0}, got, NULL);
    for (int64_t i = 0; sure && i < y * x; i++) NEAR(got[i], want[i], integers ? 2e-3 : 0.2);
    free(wide);
    free(want);
    free(floats);
    free(got);
    free(bytes);
    return sure;
}

TEST(any_size_is_the_statement_in_f64)
{
    t_random r = t_random_make(1);
    int sure = 0, n = t_slowed() ? 6 : 60;
    for (int i = 0; i < n; i++) sure += one_random(&r);
    LE_F64(n / 3, sure);
}

/* Planes that are all the same: whatever is chosen, the image comes back. */
TEST(a_transform_and_back_is_the_plane)
{
    enum { Y = 37, X = 50 };
    static uint16_t stack[2 * Y * X];
    static float image[Y * X];
    t_random r = t_random_make(2);
    for (int i = 0; i < Y * X; i++)
        stack[i] = stack[Y * X + i] = (uint16_t)t_random_i64(&r, 0, 65535);
    for (int levels = 1; levels <= 6; levels++)
        for (int pad = 0; pad <= 16; pad += 8) {
            fo_fusion how = t_fusion(FO_CWT);
            how.levels = levels;
            how.pad = pad;
            how.no_reassign = true;
            t_fuse(&(t_stack){{1, 2, Y, X}, FTH_U16, stack, NULL}, fo_cwt, &how, (t_limits){0},
                   image, NULL);
            for (int i = 0; i < Y * X; i++) NEAR(image[i], stack[i], 0.06);
        }
}

/* Energy is kept: the filters are orthonormal. */
TEST(filters_are_orthonormal)
{
    for (int shift = -4; shift <= 4; shift += 2) {
        number lows = 0, low_high = 0, highs = 0;
        for (int j = 0; j < 6; j++) {
            if (j + shift < 0 || j + shift > 5) continue;
            lows += low(j) * conj(low(j + shift));
            highs += high(j) * conj(high(j + shift));
            low_high += low(j) * conj(high(j + shift));
        }
        NEAR(cabs(lows - (shift == 0)), 0, 1e-9);
        NEAR(cabs(highs - (shift == 0)), 0, 1e-9);
        NEAR(cabs(low_high), 0, 1e-9);
    }
}

/* Every operation keeps its bits however it is cut, on every device. */
TEST(operations_can_be_cut_anywhere)
{
    static const char *const sizes[] = {"stack=2 z=3 y=17 x=13", "stack=1 z=4 y=33 x=20",
                                        "stack=2 z=2 y=9 x=34"};
    static const fth_dtype dtypes[] = {FTH_U16, FTH_F32, FTH_U8};
    t_random r = t_random_make(3);
    t_cuts(t_slowed() ? 1 : 4);
    for (int i = 0; i < 3; i++) {
        fth_graph *g = t_graph(sizes[i]);
        const fth_val stacks = t_noise(g, "stacks", dtypes[i], "stack z y x", &r);
        const fth_val kept = t_noise(g, "kept", FTH_U8, "stack z", &r);
        fo_fusion how = t_fusion(FO_CWT);
        how.base = i == 1 ? FO_BASE_MEAN : FO_BASE_MAX;
        how.consistency = 2 - i;
        how.pad = 3 * i;
        how.levels = 2 + i % 2;
        ((uint8_t *)t_data(kept))[0] = 1;
        const fo_picked p = fo_cwt(g, stacks, kept, &how);
        MADE(p.value);
        void *out = malloc((size_t)t_count(p.value) * sizeof(float));
        t_eval(p.value, out);
        t_eval(p.index, out);
        free(out);
        t_graph_free(g);
    }
}

TEST(every_instruction_set_has_the_same_bits)
{
    enum { N = 70, ROOM = 2 * N + 20 };
    t_random r = t_random_make(4);
    static float in[12][ROOM], want[4][ROOM], got[4][ROOM];
    static uint16_t votes[3][ROOM], plane[2][3][ROOM];
    static uint8_t bytes[2][4][ROOM];
    const fo_cwt_loops *plain = FTH_ISA_AT(fo_cwt_loops, 1);
    const fo_nearest_loops *plain_nearest = FTH_ISA_AT(fo_nearest_loops, 1);
    const float *line[12];
    for (int i = 0; i < 12; i++) {
        t_random_fill_f32(&r, in[i], ROOM);
        line[i] = in[i] + 4;
    }
    for (int i = 0; i < 3 * ROOM; i++)
        votes[i / ROOM][i % ROOM] =
            (uint16_t)(t_random_i64(&r, 0, 5) ? t_random_i64(&r, 0, 2) : FO_CWT_NONE);
    for (int level = 3; level <= 4; level++) {
        const fo_cwt_loops *best = FTH_ISA_AT(fo_cwt_loops, level);
        const fo_nearest_loops *best_nearest = FTH_ISA_AT(fo_nearest_loops, level);
        for (int64_t n = 1; best && n <= N; n++) {
            for (int k = 0; k < 2; k++) {
                const fo_cwt_loops *l = k ? best : plain;
                float(*o)[ROOM] = k ? got : want;
                memset(o, 0, sizeof want);
                memcpy(plane[k], votes, sizeof votes);
                for (int i = 0; i < 4 * ROOM; i++)
                    bytes[k][i / ROOM][i % ROOM] = (uint8_t)votes[i / ROOM % 3][i % ROOM];
                l->low(line, NULL, o[0], o[1], n);
                l->u16.best(o[2], plane[k][0], o[0], o[1], 3, 0.1f, n);
                l->high(line, line + 6, o[0], o[1], n);
                l->u16.best(o[2], plane[k][1], o[0], o[1], 4, 0.1f, n);
                l->even(line, line + 6, o[0], o[1], n);
                l->u16.take(o[0], o[1], plane[k][2], line[0], line[1], 1, n);
                l->odd(line, line + 6, o[1], o[2], n);
                l->weave(o[3], o[0], o[1], n);
                l->deal(o[0], o[1], o[3], n);
                l->u16.agree((void *const[3]){plane[k][0], plane[k][1], plane[k][2]}, n);
                l->u8.best(o[2], bytes[k][0], o[0], o[1], 3, 0.1f, n);
                l->u8.agree((void *const[3]){bytes[k][0], bytes[k][1], bytes[k][2]}, n);
                l->u8.majority(
                    bytes[k][3],
                    (const void *const[3]){bytes[k][0] + 1, bytes[k][1] + 1, bytes[k][2] + 1}, 7,
                    n);
                l->u8.take(o[0], o[1], bytes[k][3], line[2], line[3], 1, n);
                l->u16.majority(plane[k][0],
                                (const void *const[3]){votes[0] + 1, votes[1] + 1, votes[2] + 1}, 0,
                                n);
                o[3][0] = l->peak(line[0], line[1], n);
                (k ? best_nearest : plain_nearest)
                    ->u16(plane[k][1], plane[k][2], o[2], votes[0], line[3], 9, n);
            }
            SAME_BYTES(got, want, sizeof want);
            SAME_BYTES(plane[0], plane[1], sizeof plane[0]);
            SAME_BYTES(bytes[0], bytes[1], sizeof bytes[0]);
        }
    }
}

/* Names of more planes than a byte has: those behind the 254th can win. */
TEST(more_planes_than_a_byte_names)
{
    enum { Z = 300, Y = 6, X = 10 };
    static uint16_t stack[Z * Y * X], image[Y * X], index[Y * X];
    for (int i = 0; i < Z * Y * X; i++)
        stack[i] = i / (Y * X) == 290 ? (uint16_t)(i % 2 ? 60000 : 100) : 30000;
    const fo_fusion how = t_fusion(FO_CWT);
    t_fuse(&(t_stack){{1, Z, Y, X}, FTH_U16, stack, NULL}, fo_cwt, &how, (t_limits){0}, image,
           index);
    for (int i = 0; i < Y * X; i++) EQ_I64(index[i], 290);
    fth_graph *g = t_graph("stack=1 few=254 many=255 y=2 x=2 part=2 band=3 y1=1 x1=1");
    const fo_cwt_attr attr = {.rows = 2,
                              .cols = 2,
                              .part = fth_axis_find(g, "part"),
                              .band = fth_axis_find(g, "band"),
                              .y = fth_axis_find(g, "y1"),
                              .x = fth_axis_find(g, "x1")};
    const float floor = 0;
    const fth_val least = t_input(g, "floor", FTH_F32, "stack", &floor);
    static const char *const z[] = {"few", "many"};
    for (int i = 0; i < 2; i++) {
        char axes[2][32];
        snprintf(axes[0], sizeof axes[0], "stack %s y x", z[i]);
        snprintf(axes[1], sizeof axes[1], "stack %s", z[i]);
        const fth_val v = t_input(g, i ? "v1" : "v0", FTH_U16, axes[0], stack);
        const fth_val kept = t_input(g, i ? "k1" : "k0", FTH_U8, axes[1], stack);
        SHAPE(
            fth_custom(g, &fo_cwt_select_op, 3, ((fth_val[]){v, kept, least}), &attr, sizeof attr),
            i ? "u16 [stack=1 band=3 y1=1 x1=1]" : "u8 [stack=1 band=3 y1=1 x1=1]");
    }
    t_graph_free(g);
}

/* Budgets, threads and pieces of z change no byte. */
TEST(same_bytes_in_any_budget)
{
    enum { S = 2, Z = 5, Y = 130, X = 121 };
    static uint16_t stack[S * Z * Y * X], want[2][S * Y * X], got[2][S * Y * X];
    uint8_t kept[S * Z] = {1, 1, 0, 1, 1, 1, 1, 1, 1, 0};
    t_random r = t_random_make(5);
    for (int i = 0; i < S * Z * Y * X; i++) stack[i] = (uint16_t)t_random_i64(&r, 0, 65535);
    const t_stack t = {{S, Z, Y, X}, FTH_U16, stack, kept};
    const fo_fusion how = t_fusion(FO_CWT);
    static const t_limits limits[] = {{.threads = 2},
                                      {.resident = true},
                                      {.memory = 7 << 20},
                                      {.memory = 7 << 20, .threads = 2},
                                      {.device = true}};
    t_fuse(&t, fo_cwt, &how, (t_limits){0}, want[0], want[1]);
    for (int i = 0; i < 5; i++) {
        memset(got, 0, sizeof got);
        t_fuse(&t, fo_cwt, &how, limits[i], got[0], got[1]);
        SAME_BYTES(got, want, sizeof want);
    }
    for (int i = 0; i < S * Y * X; i++) IS_TRUE(kept[i / (Y * X) * Z + want[1][i]]);
}

TEST(one_plane_is_copied_and_constants_stay)
{
    enum { N = 20 * 24 };
    static uint16_t stack[3 * N], image[N], index[N];
    for (int i = 0; i < 3 * N; i++) stack[i] = (uint16_t)(i * 37);
    const fo_fusion how = t_fusion(FO_CWT);
    t_fuse(&(t_stack){{1, 1, 20, 24}, FTH_U16, stack, NULL}, fo_cwt, &how, (t_limits){0}, image,
           index);
    SAME_BYTES(image, stack, sizeof image);
    for (int i = 0; i < N; i++) EQ_I64(index[i], 0);
    for (int i = 0; i < 3 * N; i++) stack[i] = 777;
    t_fuse(&(t_stack){{1, 3, 20, 24}, FTH_U16, stack, NULL}, fo_cwt, &how, (t_limits){0}, image,
           index);
    for (int i = 0; i < N; i++) EQ_I64(image[i], 777);
    for (int i = 0; i < N; i++) EQ_I64(index[i], 0);
}

/* A plane that does not exist may hold anything; others keep their numbers. */
TEST(missing_planes_are_never_chosen)
{
    enum { Z = 4, Y = 30, X = 26, AREA = Y * X };
    static float stack[Z * AREA], fewer[(Z - 1) * AREA], want[AREA], got[AREA];
    static uint16_t want_index[AREA], got_index[AREA];
    t_random r = t_random_make(6);
    for (int i = 0; i < Z * AREA; i++)
        stack[i] = (float)(i / AREA == 1 ? 9e4 * t_random_f64(&r) : 1 + t_random_f64(&r));
    memcpy(fewer, stack, AREA * sizeof *stack);
    memcpy(fewer + AREA, stack + 2 * AREA, 2 * AREA * sizeof *stack);
    const uint8_t kept[Z] = {1, 0, 1, 1};
    for (int i = 0; i < 6; i++) {
        fo_fusion how = t_fusion(FO_CWT);
        how.base = i % 2 ? FO_BASE_MAX : FO_BASE_MEAN;
        how.consistency = i / 2;
        t_fuse(&(t_stack){{1, Z, Y, X}, FTH_F32, stack, kept}, fo_cwt, &how, (t_limits){0}, got,
               got_index);
        t_fuse(&(t_stack){{1, Z - 1, Y, X}, FTH_F32, fewer, NULL}, fo_cwt, &how, (t_limits){0},
               want, want_index);
        SAME_BYTES(got, want, sizeof want);
        for (int k = 0; k < AREA; k++) EQ_I64(got_index[k], want_index[k] + (want_index[k] > 0));
    }
}

/* A texture of floats counts from 1e-6 of the largest coefficient (1000 * 2^4) on, of integers from
 * 0.1 on. */
TEST(what_is_small_counts_as_nothing)
{
    enum { Y = 64, X = 48 };
    static float stack[2 * Y * X], image[Y * X];
    static uint8_t bytes[2 * Y * X];
    static const double amplitude[] = {0.5, 0.002};
    fo_fusion how = t_fusion(FO_CWT);
    how.consistency = 0;
    how.no_reassign = true;
    t_random r = t_random_make(8);
    for (int k = 0; k < 2; k++) {
        double most = 0;
        for (int i = 0; i < Y * X; i++) {
            stack[i] = 1000;
            stack[Y * X + i] = (float)(1000 + amplitude[k] * (t_random_i64(&r, 0, 1) ? 1 : -1));
        }
        t_fuse(&(t_stack){{1, 2, Y, X}, FTH_F32, stack, NULL}, fo_cwt, &how, (t_limits){0}, image,
               NULL);
        for (int i = 0; i < Y * X; i++) most = fmax(most, fabs((double)image[i] - 1000));
        if (k == 0) LE_F64(0.4 * amplitude[k], most);
        if (k == 1) LE_F64(most, 0.6 * amplitude[k]);
    }
    for (int i = 0; i < Y * X; i++) bytes[i] = bytes[Y * X + i] = 7;
    bytes[Y * X + 30 * X + 20] = 8; /* |c| of up to 0.4 beside it, of less farther away */
    t_fuse(&(t_stack){{1, 2, Y, X}, FTH_U8, bytes, NULL}, fo_cwt, &how, (t_limits){0}, image, NULL);
    NEAR(image[30 * X + 20], 8, 0.3);
    NEAR(image[0], 7, 0.1);
}

/* Votes, by hand: two bands overrule the third, equal votes go to the smaller plane, the border
 * repeats, and what vanishes has no vote. */
TEST(votes)
{
    enum { N = FO_CWT_NONE };
    fth_graph *g = t_graph("stack=1 band=3 y=1 x=4");
    const uint16_t planes[3][4] = {{5, 2, N, N}, {5, 3, 7, N}, {1, 4, 7, N}};
    const int64_t first = 6;
    const fth_val v = t_input(g, "v", FTH_U16, "stack band y x", planes);
    const uint8_t bytes[3][4] = {{5, 2, 255, 255}, {5, 3, 7, 255}, {1, 4, 7, 255}};
    const fth_val b = t_input(g, "bytes", FTH_U8, "stack band y x", bytes);
    const fth_val f = t_input(g, "first", FTH_I64, "stack", &first);
    static const uint16_t want[3][3][4] = {{{5, 2, 6, 6}, {5, 3, 7, 6}, {1, 4, 7, 6}},
                                           {{5, 2, 7, 6}, {5, 3, 7, 6}, {5, 4, 7, 6}},
                                           {{5, 2, 2, 7}, {5, 3, 3, 7}, {5, 4, 4, 7}}};
    for (int consistency = 0; consistency < 3; consistency++) {
        const fo_cwt_vote_attr attr = {consistency};
        uint16_t got[3][4];
        t_eval(fth_custom(g, &fo_cwt_vote_op, 2, ((fth_val[]){v, f}), &attr, sizeof attr), got);
        SAME_BYTES(got, want[consistency], sizeof got);
        uint8_t small[3][4];
        t_eval(fth_custom(g, &fo_cwt_vote_op, 2, ((fth_val[]){b, f}), &attr, sizeof attr), small);
        for (int i = 0; i < 12; i++) EQ_I64(small[i / 4][i % 4], want[consistency][i / 4][i % 4]);
    }
    t_graph_free(g);
}

/* Of a plate's stack, and of one with ten times as many planes: memory does not grow with them. */
TEST_REPEAT(a_stack_of_a_plate_fits_in_64_MiB)
{
    fth_err err = {0};
    OKE(t_fuse_plan((int64_t[]){1, 17, 2189, 1152}, FTH_U16, FO_CWT, (uint64_t)64 << 20, &err),
        &err);
    OKE(t_fuse_plan((int64_t[]){1, 170, 2189, 1152}, FTH_U16, FO_CWT, (uint64_t)64 << 20, &err),
        &err);
    IS(t_fuse_plan((int64_t[]){1, 17, 2189, 1152}, FTH_U16, FO_CWT, 16 << 20, &err), FTH_E_NO_FIT);
}

TEST(mistakes_are_told)
{
    fth_graph *g = t_graph("stack=1 z=2 y=16 x=16");
    t_random r = t_random_make(7);
    const fth_val stacks = t_noise(g, "stacks", FTH_U16, "stack z y x", &r);
    const fth_val kept = t_noise(g, "kept", FTH_U8, "stack z", &r);
    const fth_val wide = t_noise(g, "wide", FTH_F64, "stack z y x", &r);
    fo_fusion how = t_fusion(FO_CWT);
    IS_TRUE(!fth_val_ok(fo_cwt(g, wide, kept, &how).value));
    REFUSED(g, FTH_E_DTYPE_OP, "neither a stack");
    fth_graph_clear_errors(g);
    IS_TRUE(fth_val_ok(fo_cwt(g, stacks, kept, &how).value));
    how.pad = 0;
    IS_TRUE(!fth_val_ok(fo_cwt(g, stacks, kept, &how).value));
    REFUSED(g, FTH_E_AXIS_SIZE, "two sizes");
    t_graph_free(g);
}

TEST_MAIN()
