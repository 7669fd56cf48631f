/* test_splat_large.c - counts that do not fit 16 bits, or the whole numbers of a float: tiles of an
 * image, rows that are drawn and marked.
 * labels: gpu
 * seconds: 3 */
#include "instruments/splat/render/frame.h"
#include "instruments/splat/strategy/draw.h"
#include "testing/splat/splat.h"

#include <math.h>
#include <stdlib.h>

enum { WIDTH = 4096, HEIGHT = 1040, GAUSSIANS = 500 };

static fth_context *context(void)
{
    fth_context *ctx = NULL;
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 2;
    opt.mem.budget_bytes = (uint64_t)1 << 30;
    opt.device = getenv("FATHOM_TEST_DEVICE") ? "cuda" : "cpu";
    opt.backend_path = getenv("FATHOM_TEST_DEVICE");
    OK(fth_context_create(&ctx, &opt, NULL));
    return ctx;
}

/* On a wall far away, where a pixel is 1 wide, so that they stand all over the image. */
static void make_wall(gs_model *m, fth_mem *mem)
{
    t_random r = t_random_make(5);
    OK(gs_model_create(m, mem, GAUSSIANS, 0, NULL));
    for (int64_t g = 0; g < m->n; g++) {
        float *at = m->at[GS_MEANS] + 3 * g;
        at[0] = (float)(WIDTH * t_random_f64(&r));
        at[1] = (float)(HEIGHT * t_random_f64(&r));
        if (g < 60) at[1] = (float)(HEIGHT - 1 - 0.1 * (double)g); /* many in the last tiles */
        at[2] = (float)(1e5 + 0.1 * (double)g);
        m->at[GS_ROTATION][4 * g] = 1;
        m->at[GS_OPACITY][g] = 1;
        for (int k = 0; k < 3; k++) {
            m->at[GS_SCALING][3 * g + k] = 1;
            m->at[GS_SH_0][3 * g + k] = (float)t_random_f64(&r);
        }
    }
}

TEST(more_tiles_than_16_bits_number)
{
    const double black[3] = {0};
    fth_context *ctx = context();
    float *image[2];
    gs_model m;
    make_wall(&m, fth_context_mem(ctx));
    for (int k = 0; k < 2; k++) { /* 66,560 tiles of 8 px, and 4,224 of 32 */
        const gs_frame_options how = {
            .width = WIDTH, .height = HEIGHT, .most_alpha = 0.999, .tile = k ? 32 : 8};
        gs_view view = {.width = WIDTH, .height = HEIGHT, .fx = 1e5, .fy = 1e5};
        gs_frame f;
        fth_err err = {0};
        for (int i = 0; i < 3; i++) view.w2c[i][i] = 1;
        OK(gs_frame_create(&f, ctx, &m, &how, &err));
        OKE(gs_frame_run(&f, &view, black, 0, &err), &err);
        const size_t bytes = (size_t)WIDTH * HEIGHT * 3 * sizeof(float);
        image[k] = malloc(bytes);
        memcpy(image[k], fth_tensor_view(f.image), bytes);
        gs_frame_free(&f);
    }
    SAME_BYTES(image[0], image[1], (size_t)WIDTH * HEIGHT * 3 * sizeof(float));
    int64_t lit = 0, low = 0; /* pixels of the first row of tiles, of the last */
    for (int64_t i = 0; i < (int64_t)WIDTH * 8 * 3; i++) {
        low += image[0][i] > 0;
        lit += image[0][(int64_t)WIDTH * (HEIGHT - 8) * 3 + i] > 0;
    }
    IS_TRUE(lit > 20 * 60 && lit > 5 * low);
    for (int k = 0; k < 2; k++) free(image[k]);
    gs_model_free(&m);
    OK(fth_context_destroy(ctx, NULL));
}

/* Rows beyond 2^24 are no neighbours to a float. */
TEST(draws_and_ranks_of_more_rows_than_a_float_counts)
{
    enum { DRAWS = 2000 };
    const int64_t first = (int64_t)1 << 24, n = first + 5001;
    fth_mem *mem = t_mem((uint64_t)256 << 20);
    gs_marks skip;
    gs_urn urn = {.n = n, .draws = DRAWS, .seed = 3, .iteration = 7, .stream = 4, .skip = &skip};
    float *opacity = malloc((size_t)n * sizeof *opacity);
    for (int64_t i = 0; i < n; i++) opacity[i] = i < first ? -200 : 0;
    OK(gs_marks_create(&skip, mem, n, "marks", NULL));
    for (int64_t i = first + 1; i < n; i += 4) gs_marks_set(&skip, i);
    gs_marks_count(&skip);
    EQ_I64(skip.count, 1250);
    EQ_I64(gs_marks_rank(&skip, n - 1), 1250);
    EQ_I64(gs_marks_rank(&skip, first + 2), 1);
    urn.opacity = opacity;
    urn.after = malloc((size_t)(n / GS_BLOCK + 1) * sizeof *urn.after);
    urn.drawn = malloc(DRAWS * sizeof *urn.drawn);
    urn.times = calloc((size_t)n, 1);
    gs_urn_draw(&urn);
    NEAR(urn.total, 0.5 * (5001 - 1250), 1e-9);
    int64_t odd = 0, total = 0;
    for (int j = 0; j < DRAWS; j++) {
        const int64_t row = urn.drawn[j];
        IS_TRUE(row >= first && row < n && !gs_marks_has(&skip, row));
        odd += row % 2;
    }
    for (int64_t i = first; i < n; i++) total += urn.times[i];
    EQ_I64(total, DRAWS);
    NEAR((double)odd / DRAWS, 1.0 / 3, 0.05); /* rows of 1 modulo 4 are left out */
    gs_marks_free(&skip);
    free(opacity);
    free(urn.after);
    free(urn.drawn);
    free(urn.times);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(rows_that_no_number_has_are_refused)
{
    const gs_raster rule = {.width = 16, .height = 16, .tile = 16, .most_alpha = 0.999};
    for (int64_t more = 0; more < 2; more++) {
        fth_context *ctx = context();
        fth_graph *g = fth_graph_create(ctx);
        fth_err err = {0};
        fth_axis(g, "g", INT32_MAX + more);
        fth_axis(g, "p", GS_SPLAT);
        gs_order(g, &rule, fth_expand(fth_const(g, FTH_F32, 0), "g p"));
        IS(fth_graph_check(g, &err), more ? FTH_E_GRAPH_ATTR : FTH_OK);
        if (more) HAS(err.text, "expected at most 2147483647 rows, found 2147483648");
        OK(fth_graph_destroy(g));
        OK(fth_context_destroy(ctx, NULL));
    }
}

TEST_MAIN()
