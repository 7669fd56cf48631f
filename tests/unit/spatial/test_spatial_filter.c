/* test_spatial_filter.c - the common scale of positions and the filters, against golden numbers.
 * seconds: 1 */
#include "testing/io/files.h"
#include "testing/spatial/spatial_data.h"

#include "instruments/spatial/preprocess/filter.h"

#include <math.h>

/* All steps are those of NumPy in f32; only its exp, one bit off in the golden file, is not. That
 * bit is 1.2e-7 of positions up to 150. */
TEST(positions_are_rescaled_as_in_numpy)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_tensor *raw = t_spatial_golden(mem, T_SPATIAL_GOLDEN "data.npz", "raw_xy"),
               *want = t_spatial_golden(mem, T_SPATIAL_GOLDEN "data.npz", "X");
    fth_err err = {0};
    EQ_I64(fth_tensor_dtype(raw), FTH_F32);
    sp_frame frame = {0};
    fth_tensor *first = t_spatial_golden(mem, T_SPATIAL_GOLDEN "data.npz", "raw_xy");
    OKE(sp_rescale(fth_tensor_data(raw), 300, 50, "raw", &frame, &err), &err);
    IS_TRUE(frame.known);
    for (int64_t i = 0; i < 600; i++) {
        const double x = (double)((float *)fth_tensor_data(raw))[i],
                     from = (double)((float *)fth_tensor_data(first))[i];
        NEAR(x, ((float *)fth_tensor_data(want))[i], 3.5e-5);
        NEAR(x, (from - frame.offset[i % 2]) * frame.scale, 1e-4); /* what it says it did */
    }
    fth_tensor_release(first);
    fth_tensor_release(raw);
    fth_tensor_release(want);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(positions_that_cannot_be_rescaled)
{
    float flat[6] = {1, 7, 2, 7, 3, 7}, gap[6] = {1, 2, 3, NAN, 5, 6}, far[4] = {0, 0, INFINITY, 1},
          wide[4] = {-3e38f, 0, 3e38f, 1};
    fth_err err = {0};
    IS(sp_rescale(flat, 3, 50, "a.h5ad, obsm 'spatial'", NULL, &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "axis 1 has no extent");
    HAS(err.text, "a.h5ad, obsm 'spatial'");
    HAS(err.hint, "preprocessing.coord_key");
    fth_err_clear(&err);
    IS(sp_rescale(gap, 3, 50, "a.h5ad", NULL, &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "cell 1 has the coordinate nan on axis 1");
    HAS(err.hint, "preprocessing.rescale: false");
    IS(sp_rescale(far, 2, 50, "a", NULL, NULL), FTH_E_FILE_FORMAT);
    IS(sp_rescale(wide, 2, 50, "a", NULL, NULL), FTH_E_FILE_FORMAT);
}

static void put(fth_texts *t, const char *text)
{
    OK(fth_texts_add(t, text, strlen(text), NULL));
}

/* preprocess.npz: gaps in positions, counts, codes and names, then groups below seven cells. */
TEST(golden_filters)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *file = T_SPATIAL_GOLDEN "preprocess.npz";
    fth_tensor *x = t_spatial_golden(mem, file, "X_in"), *y = t_spatial_golden(mem, file, "Y_in"),
               *c = t_spatial_golden(mem, file, "C_in"),
               *nan_x = t_spatial_golden(mem, file, "nan_X"),
               *nan_c = t_spatial_golden(mem, file, "nan_C"),
               *small_x = t_spatial_golden(mem, file, "small_X"),
               *small_c = t_spatial_golden(mem, file, "small_C"),
               *min_group = t_spatial_golden(mem, file, "min_group");
    int64_t row[40], dropped[SP_DROP_KINDS] = {0};
    int32_t code[40], map[5];
    bool bad[40] = {false};
    for (int64_t i = 0; i < 40; i++) {
        row[i] = i;
        code[i] = (int32_t)((int64_t *)fth_tensor_data(c))[i];
        for (int g = 0; g < 24; g++)
            bad[i] = bad[i] || isnan(((float *)fth_tensor_data(y))[i * 24 + g]);
    }
    fth_texts *names = NULL;
    OK(fth_texts_create(&names, mem, NULL));
    put(names, "A");
    put(names, "B");
    put(names, "C");
    put(names, "D");
    put(names, "nan");
    sp_cells cells = {40, row, fth_tensor_data(x), code, NULL};
    sp_filter_missing(&cells, bad, names, dropped);
    EQ_I64(cells.n, fth_tensor_size(nan_c, 0));
    SAME_BYTES(cells.xy, fth_tensor_data(nan_x), cells.n * 8);
    for (int64_t i = 0; i < cells.n; i++) EQ_I64(code[i], ((int64_t *)fth_tensor_data(nan_c))[i]);
    EQ_I64(dropped[SP_DROP_POSITION], 1);
    EQ_I64(dropped[SP_DROP_COUNT], 1);
    EQ_I64(dropped[SP_DROP_LABEL], 2);
    const int64_t least = *(int64_t *)fth_tensor_data(min_group);
    EQ_I64(sp_filter_small(&cells, 5, least, map, dropped), 2);
    EQ_I64(cells.n, fth_tensor_size(small_c, 0));
    SAME_BYTES(cells.xy, fth_tensor_data(small_x), cells.n * 8);
    for (int64_t i = 0; i < cells.n; i++) EQ_I64(code[i], ((int64_t *)fth_tensor_data(small_c))[i]);
    EQ_I64(map[1], 0); /* the names that stay are B and C */
    EQ_I64(map[2], 1);
    EQ_I64(map[0] + map[3] + map[4], -3);
    EQ_I64(dropped[SP_DROP_GROUP], 6);
    fth_tensor *all[] = {x, y, c, nan_x, nan_c, small_x, small_c, min_group};
    for (int i = 0; i < 8; i++) fth_tensor_release(all[i]);
    fth_texts_free(names);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(thresholds)
{
    EQ_I64(sp_group_threshold(0.01, 4839), 48);
    EQ_I64(sp_group_threshold(0, 4839), 1);
    EQ_I64(sp_group_threshold(0.01, 50), 1); /* 0.5 to even is 0, and one is the least */
    EQ_I64(sp_group_threshold(0.25, 10), 2); /* 2.5 to even */
    EQ_I64(sp_group_threshold(0.25, 14), 4); /* 3.5 to even */
    int64_t row[3] = {0, 1, 2}, dropped[SP_DROP_KINDS] = {0};
    float xy[6] = {0};
    int32_t code[3] = {0, 0, 2}, map[4];
    sp_cells cells = {3, row, xy, code, NULL};
    EQ_I64(sp_filter_small(&cells, 4, 1, map, dropped), 4); /* groups without cells stay, too */
    EQ_I64(cells.n, 3);
    EQ_I64(sp_filter_small(&cells, 4, 2, map, dropped), 1);
    EQ_I64(cells.n, 2);
}

TEST(names_of_mitochondrial_genes)
{
    IS_TRUE(sp_is_mitochondrial("MT-CO1") && sp_is_mitochondrial("mt-Nd1") &&
            sp_is_mitochondrial("Mt-"));
    IS_TRUE(!sp_is_mitochondrial("MTOR") && !sp_is_mitochondrial("mt") &&
            !sp_is_mitochondrial("xmt-1"));
}

TEST_MAIN()
