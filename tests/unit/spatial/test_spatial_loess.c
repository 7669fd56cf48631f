/* test_spatial_loess.c - local regression against values of scikit-misc 0.5.3, and where it has
 * none. seconds: 1 */
#include "instruments/spatial/preprocess/loess.h"
#include "testing/io/files.h"

#include <math.h>

enum { N = 48 };

/* With ties, which decide where cells are cut. */
static const double x[N] = {-0.8, -1.3, -0.2, 0.4,  1.1,  0.1,  -0.6, -0.8, 0.7,  1.6,  0.3,  -1.2,
                            -1.0, 1.6,  0.2,  -1.7, -0.1, -1.2, -0.6, -0.5, -0.7, 0.6,  -0.1, -0.6,
                            0.4,  0.8,  -1.6, -0.3, -1.0, -0.2, -1.3, 0.0,  0.0,  -0.3, -1.0, -0.4,
                            -1.1, -1.4, 0.2,  -1.1, 1.2,  0.7,  -2.0, 0.3,  -1.1, 0.0,  0.0,  -2.0};
static const double y[N] = {
    -1.046, -0.567, -0.197, 0.481,  0.956,  -0.021, -0.998, -1.168, 1.275,  0.055,  1.051,  -0.547,
    -0.740, 0.110,  0.268,  0.242,  0.071,  -0.755, -0.894, -0.846, -0.864, 0.859,  -0.229, -0.884,
    0.738,  0.827,  0.238,  -0.824, -1.150, -0.646, -0.322, -0.072, -0.194, -0.792, -0.825, -0.928,
    -1.063, -0.212, 0.150,  -0.873, 0.674,  0.896,  0.746,  0.832,  -0.912, -0.252, -0.367, 0.716};
/* loess(x, y, span=0.3, degree=2) */
static const double fitted[N] = {
    -1.024733040077728,  -0.4710256932613127, -0.4424858639272921, 0.8008294092401307,
    0.8596363342581306,  0.04970112678620341, -0.9056359023393648, -1.024733040077728,
    0.9765427893017027,  0.07836799729026474, 0.6285183576537672,  -0.7139155624091773,
    -0.9801517769705239, 0.07836799729026474, 0.337848136921957,   0.3258603881550951,
    -0.1890937073789822, -0.7139155624091773, -0.9056359023393648, -0.9004526230864009,
    -0.9881251335298382, 0.9444081726654343,  -0.1890937073789822, -0.9056359023393648,
    0.8008294092401307,  0.9911817972148032,  0.1619060946379686,  -0.7749421170014648,
    -0.9801517769705239, -0.4424858639272921, -0.4710256932613127, -0.1647617876675579,
    -0.1647617876675579, -0.7749421170014648, -0.9801517769705239, -0.8790245018447156,
    -0.8628874020583785, -0.2543925320773622, 0.337848136921957,   -0.8628874020583785,
    0.759682478978672,   0.9765427893017027,  0.7251994160742443,  0.6285183576537672,
    -0.8628874020583785, -0.1647617876675579, -0.1647617876675579, 0.7251994160742443};

TEST(values_of_scikit_misc)
{
    fth_mem *mem = t_mem(1 << 20);
    double got[N];
    OK(sp_loess(mem, N, x, y, 0.3, got, NULL));
    for (int i = 0; i < N; i++) NEAR(got[i], fitted[i], 1e-13);
    fth_mem_stats stats;
    fth_mem_get_stats(mem, &stats);
    IS_TRUE(stats.peak_bytes <= sp_loess_bytes(N));
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_quadratic_is_its_own_fit)
{
    enum { M = 500 };
    fth_mem *mem = t_mem(1 << 20);
    double at[M], of[M], got[M];
    for (int i = 0; i < M; i++) {
        at[i] = (double)((i * 37) % M) / 50;
        of[i] = 2 - 3 * at[i] + 0.5 * at[i] * at[i];
    }
    OK(sp_loess(mem, M, at, of, 0.3, got, NULL));
    for (int i = 0; i < M; i++) NEAR(got[i], of[i], 1e-11);
    OK(fth_mem_destroy(mem, NULL));
}

/* Fewer places than a quadratic has coefficients, or than a neighbourhood has points. */
TEST(few_places)
{
    fth_mem *mem = t_mem(1 << 20);
    double at[60], of[60], got[60];
    for (int places = 1; places <= 3; places++)
        for (int n = 1; n <= 60; n++) {
            for (int i = 0; i < n; i++) {
                at[i] = i % places;
                of[i] = 5 + 2 * (i % places);
            }
            OK(sp_loess(mem, n, at, of, 0.3, got, NULL));
            for (int i = 0; i < n; i++) IS_TRUE(isfinite(got[i]));
            for (int i = 0; i < n && places == 1; i++) NEAR(got[i], 5, 1e-9);
        }
    OK(sp_loess(mem, 0, at, of, 0.3, got, NULL));
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
