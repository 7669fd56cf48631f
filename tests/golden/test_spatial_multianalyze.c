/* test_spatial_multianalyze.c - distances and matches of factors against the golden set; files.
 * seconds: 4 */
#include "testing/spatial/spatial_arrays.h"

#include "instruments/spatial/compare/multianalyze.h"

#include <fathom/json.h>
#include <math.h>

enum { N = 300, L = 3 };
#define MULTI SPATIAL_GOLDEN("multianalyze.npz")

TEST(distances_and_matches_are_the_golden_ones)
{
    float *A = t_npz_f32(MULTI, "A", NULL), *B = t_npz_f32(MULTI, "B", NULL);
    double *D = t_npz_f64(MULTI, "D", NULL), *matches = t_npz_f64(MULTI, "matches", NULL);
    double distance[L * L], room[2 * L];
    sp_factor_pair pair[L];
    fth_mem *mem = t_mem(1 << 20);
    sp_factor_distances(distance, A, L, B, L, N, room);
    /* B was made in f64; here, as in files, it is f32. */
    for (int i = 0; i < L * L; i++) NEAR(distance[i], D[i], 1e-6);
    for (int best = 0; best < 2; best++) {
        OK(sp_factor_pairs(pair, mem, distance, L, L, best, NULL));
        for (int i = 0; i < L; i++) {
            EQ_I64(pair[i].a, (int64_t)matches[2 * i]);
            EQ_I64(pair[i].b, (int64_t)matches[2 * i + 1]);
            EQ_F64(pair[i].distance, distance[pair[i].a * L + pair[i].b]);
        }
    }
    OK(fth_mem_destroy(mem, NULL));
    free(A);
    free(B);
    free(D);
    free(matches);
}

/* The nearest pair first is not always the least sum. */
TEST(the_hungarian_method_takes_the_least_sum)
{
    const double distance[] = {0.1, 0.2, 0.3, 0.9};
    sp_factor_pair pair[2];
    fth_mem *mem = t_mem(1 << 20);
    OK(sp_factor_pairs(pair, mem, distance, 2, 2, false, NULL));
    IS_TRUE(pair[0].a == 0 && pair[0].b == 0 && pair[1].a == 1 && pair[1].b == 1);
    OK(sp_factor_pairs(pair, mem, distance, 2, 2, true, NULL));
    IS_TRUE(pair[0].a == 0 && pair[0].b == 1 && pair[1].a == 1 && pair[1].b == 0);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_factor_of_zeros_is_far_from_all_but_zeros)
{
    const float A[] = {0, 1, 0, 2}, B[] = {0, 3, 0, -4};
    double distance[4], room[4];
    sp_factor_distances(distance, A, 2, B, 2, 2, room);
    EQ_F64(distance[0], 0);
    NEAR(distance[1], 1, 1e-9);
    NEAR(distance[3], 2 - 2 * (1 * 3 - 2 * 4) / (sqrt(5) * 5), 1e-9);
}

static fth_tensor *tensor(fth_mem *mem, int64_t cols, float shift)
{
    fth_tensor *t = NULL;
    OK(fth_tensor_create(&t, mem, "F", FTH_F32, 2, ((int64_t[]){N, cols}), NULL));
    float *v = fth_tensor_data(t);
    for (int i = 0; i < N; i++)
        for (int l = 0; l < cols; l++)
            v[i * cols + l] = 1 + sinf((float)(i % 20) * 0.3f * (float)(l + 1) + shift) +
                              (float)(i / 20) * 0.1f * (float)l;
    return t;
}

/* Three models: what is shown of the third is the nearest to the first's. */
TEST(three_models_are_compared_with_the_first)
{
    fth_mem *mem = t_mem(64 << 20);
    sp_comparison c = {.mem = mem, .n = 3, .model = {"svgp", "pnmf", "lcgp"}, .against = 2};
    c.F[0] = tensor(mem, 3, 0);
    c.F[1] = tensor(mem, 5, 0.4f);
    c.F[2] = tensor(mem, 4, 0.1f);
    c.xy = tensor(mem, 2, 0.3f);
    OK(sp_compare(&c, 9, NULL));
    EQ_I64(c.rows, 3);
    for (int64_t r = 0; r < c.rows; r++) {
        EQ_I64(c.shown[r * 3], c.pair[0][2][r].a);
        EQ_I64(c.shown[r * 3 + 2], c.pair[0][2][r].b);
        EQ_F64(c.away[r * 3 + 2], c.pair[0][2][r].distance);
        const double *d = fth_tensor_data(c.distance[0][1]);
        for (int l = 0; l < 5; l++) IS_TRUE(c.away[r * 3 + 1] <= d[c.shown[r * 3] * 5 + l]);
    }
    EQ_I64(c.n_pairs[1][2], 4);
    const char *dir = t_temp_path("");
    OK(sp_comparison_write(&c, dir, NULL, NULL));
    static const char *const file[] = {
        "comparison_svgp_vs_pnmf_vs_lcgp.png", "comparison_svgp_vs_pnmf_vs_lcgp.json",
        "distance_heatmap_svgp_vs_pnmf.png", "distance_heatmap_svgp_vs_lcgp.png",
        "distance_heatmap_pnmf_vs_lcgp.png"};
    for (int i = 0; i < 5; i++) IS_TRUE(t_file_exists(t_temp_path(file[i])));
    fth_json *doc = NULL;
    OK(fth_json_load(&doc, mem, t_temp_path(file[1]), NULL));
    const fth_json_value *root = fth_json_root(doc);
    EQ_STR(fth_json_get_text(root, "matched_against", ""), "lcgp");
    const fth_json_value *second = fth_json_at(fth_json_get(root, "comparisons"), 1);
    EQ_STR(fth_json_get_text(second, "b", ""), "lcgp");
    const fth_json_value *row = fth_json_at(fth_json_get(second, "distances"), 2);
    EQ_F64(fth_json_get_real(fth_json_at(row, 3), NULL, 9),
           ((double *)fth_tensor_data(c.distance[0][2]))[2 * 4 + 3]);
    fth_json_destroy(doc);
    sp_comparison_clear(&c);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
