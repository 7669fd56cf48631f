/* test_spatial_neighbours.c - lists of neighbours of the golden model lcgp.
 * seconds: 1 */
#include "testing/test.h"

#include "instruments/spatial/neighbours/neighbours.h"

#include <fathom/fathom.h>

#define GOLDEN "tests/golden/spatial/"

/* A whole array of an NPZ file, of malloc; its elements are as they are in the file. */
static void *array(fth_mem *mem, const char *file, const char *name, fth_dtype dtype, int64_t *rows)
{
    fth_npz *npz = NULL;
    fth_err err = {0};
    OKE(fth_npz_open(&npz, mem, file, &err), &err);
    fth_source s;
    OKE(fth_npz_source(npz, name, &s, &err), &err);
    EQ_STR(fth_dtype_name(s.dtype), fth_dtype_name(dtype));
    EQ_I64(s.n_axes, 2);
    void *v = malloc((size_t)(s.size[0] * s.size[1] * fth_dtype_size(dtype)));
    if (!v) FAIL("no memory");
    OKE(s.read(s.self, (int64_t[]){0, 0}, s.size, v, &err), &err);
    *rows = s.size[0];
    fth_source_close(&s);
    fth_npz_close(npz);
    return v;
}

TEST(lists_are_those_of_the_golden_model)
{
    enum { N = 300, K = 6 };
    fth_context *ctx = NULL;
    OK(fth_context_create(&ctx, NULL, NULL));
    fth_mem *mem = fth_context_mem(ctx);
    int64_t rows;
    float *xy = array(mem, GOLDEN "data.npz", "X", FTH_F32, &rows);
    EQ_I64(rows, N);
    int64_t *want_inf = array(mem, GOLDEN "model_lcgp.npz", "nb_inference", FTH_I64, &rows);
    int64_t *want_kl = array(mem, GOLDEN "model_lcgp.npz", "nb_for_kl", FTH_I64, &rows);

    sp_model m = {.mem = mem};
    OK(fth_tensor_create(&m.nbr_kl, mem, "kl", FTH_I32, 2, ((int64_t[]){N, K}), NULL));
    OK(fth_tensor_create(&m.nbr_inf, mem, "inf", FTH_I32, 2, ((int64_t[]){N, K}), NULL));
    sp_nbr_conditional kl;
    sp_nbr_inference inf;
    OK(sp_neighbours_conditional(&kl, ctx, &m, xy, NULL, NULL));
    OK(sp_neighbours_inference(&inf, ctx, &m, xy, NULL, NULL));
    const int32_t *a = fth_tensor_data(kl.list), *b = fth_tensor_data(inf.list);
    for (int i = 0; i < N * K; i++) {
        EQ_I64(a[i], want_kl[i]);
        EQ_I64(b[i], want_inf[i]);
    }
    fth_tensor_release(m.nbr_kl);
    fth_tensor_release(m.nbr_inf);
    OK(fth_context_destroy(ctx, NULL));
    free(xy), free(want_inf), free(want_kl);
}

TEST_MAIN()
