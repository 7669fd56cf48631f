/* mosaic.c - rotations of the mosaic domains, and a random orientation (model 8). */
#include "mosaic.h"
#include "../ops/ops.h"

#define PI 3.14159265358979323846

fth_status br_mosaic_make(fth_tensor **out, fth_mem *mem, int64_t domains, double spread,
                          br_ran1 *r, int64_t *seed, fth_err *err)
{
    *out = NULL;
    if (domains < 1)
        return FTH_FAIL(err, FTH_E_USAGE, "expected at least one mosaic domain, found %lld",
                        (long long)domains);
    FTH_TRY_CTX(fth_tensor_create(out, mem, "mosaic", FTH_F64, 2, ((int64_t[2]){domains, 9}), err),
                err, "%lld mosaic domains", (long long)domains);
    double *u = fth_tensor_data(*out);
    for (int64_t i = 0; i < domains; i++) br_cap_rotation(r, (float)spread, seed, u + 9 * i);
    /* the deviates of the first domain are drawn anyway, so the others stay the same */
    for (int i = 0; i < 9; i++) u[i] = i % 4 == 0 ? 1 : 0;
    return FTH_OK;
}

/* Rows of the rotation of a unit quaternion that is uniform on the sphere (Shoemake 1992). */
static void uniform_rotation(br_ran1 *r, int64_t *seed, double *u)
{
    const double u1 = (double)br_uniform(r, seed), u2 = (double)br_uniform(r, seed),
                 u3 = (double)br_uniform(r, seed);
    const double a = sqrt(1 - u1), b = sqrt(u1);
    const double x = a * sin(2 * PI * u2), y = a * cos(2 * PI * u2);
    const double z = b * sin(2 * PI * u3), w = b * cos(2 * PI * u3);
    u[0] = 1 - 2 * (y * y + z * z);
    u[1] = 2 * (x * y - z * w);
    u[2] = 2 * (x * z + y * w);
    u[3] = 2 * (x * y + z * w);
    u[4] = 1 - 2 * (x * x + z * z);
    u[5] = 2 * (y * z - x * w);
    u[6] = 2 * (x * z - y * w);
    u[7] = 2 * (y * z + x * w);
    u[8] = 1 - 2 * (x * x + y * y);
}

void br_random_misset(br_ran1 *r, int64_t *seed, bool cap_of_90_radians, double *angle)
{
    double u[9];
    if (cap_of_90_radians)
        br_cap_rotation(r, 90.0f, seed, u);
    else
        uniform_rotation(r, seed, u);
    if (u[6] * u[6] < 1) {
        angle[0] = atan2(u[7], u[8]);
        angle[1] = atan2(-u[6], sqrt(u[7] * u[7] + u[8] * u[8]));
        angle[2] = atan2(u[3], u[0]);
    } else {
        angle[0] = PI;
        angle[1] = PI / 2;
        angle[2] = atan2(u[1], -u[4]);
    }
}
