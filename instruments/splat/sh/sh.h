/* sh.h - real spherical harmonics up to degree 3, with the signs of Gaussian splatting.
 *
 * Written once for float and double: include it with REAL and SH(name) defined (and
 * SH_FUNCTION, where functions are for a device). SH(basis) gives the
 * (degree + 1)^2 functions at a unit vector, SH(slopes) their derivatives along x, y and z as if
 * they were polynomials of all space. Sums and products only, so the two are each other's rounding.
 */
#ifndef SPLAT_SH_CONSTANTS
#define SPLAT_SH_CONSTANTS
#define SH_K0 0.28209479177387814
#define SH_K1 0.48860251190291987
#define SH_K2 1.0925484305920792
#define SH_K3 0.94617469575755997
#define SH_K4 0.31539156525251999
#define SH_K5 0.54627421529603959
#define SH_K6 0.59004358992664352
#define SH_K7 2.8906114426405538
#define SH_K8 0.45704579946446572
#define SH_K9 0.3731763325901154
#define SH_K10 1.4453057213202769
#endif

#ifndef SH_FUNCTION
#define SH_FUNCTION static inline
#endif
#define K(n) ((REAL)SH_K##n)

SH_FUNCTION void SH(basis)(int degree, REAL x, REAL y, REAL z, REAL b[16])
{
    b[0] = K(0);
    if (degree < 1) return;
    b[1] = -K(1) * y;
    b[2] = K(1) * z;
    b[3] = -K(1) * x;
    if (degree < 2) return;
    const REAL xx = x * x, yy = y * y, zz = z * z, xy = x * y;
    b[4] = K(2) * xy;
    b[5] = -K(2) * (y * z);
    b[6] = K(3) * zz - K(4);
    b[7] = -K(2) * (x * z);
    b[8] = K(5) * (xx - yy);
    if (degree < 3) return;
    b[9] = K(6) * y * (yy - 3 * xx);
    b[10] = K(7) * xy * z;
    b[11] = K(8) * y * (1 - 5 * zz);
    b[12] = K(9) * z * (5 * zz - 3);
    b[13] = K(8) * x * (1 - 5 * zz);
    b[14] = K(10) * z * (xx - yy);
    b[15] = K(6) * x * (3 * yy - xx);
}

SH_FUNCTION void SH(slopes)(int degree, REAL x, REAL y, REAL z, REAL d[16][3])
{
    for (int i = 0; i < 16; i++) d[i][0] = d[i][1] = d[i][2] = 0;
    if (degree < 1) return;
    d[1][1] = -K(1);
    d[2][2] = K(1);
    d[3][0] = -K(1);
    if (degree < 2) return;
    d[4][0] = K(2) * y;
    d[4][1] = K(2) * x;
    d[5][1] = -K(2) * z;
    d[5][2] = -K(2) * y;
    d[6][2] = 2 * K(3) * z;
    d[7][0] = -K(2) * z;
    d[7][2] = -K(2) * x;
    d[8][0] = 2 * K(5) * x;
    d[8][1] = -2 * K(5) * y;
    if (degree < 3) return;
    const REAL xx = x * x, yy = y * y, zz = z * z, xy = x * y, xz = x * z, yz = y * z;
    d[9][0] = -6 * K(6) * xy;
    d[9][1] = 3 * K(6) * (yy - xx);
    d[10][0] = K(7) * yz;
    d[10][1] = K(7) * xz;
    d[10][2] = K(7) * xy;
    d[11][1] = K(8) * (1 - 5 * zz);
    d[11][2] = -10 * K(8) * yz;
    d[12][2] = K(9) * (15 * zz - 3);
    d[13][0] = K(8) * (1 - 5 * zz);
    d[13][2] = -10 * K(8) * xz;
    d[14][0] = 2 * K(10) * xz;
    d[14][1] = -2 * K(10) * yz;
    d[14][2] = K(10) * (xx - yy);
    d[15][0] = 3 * K(6) * (yy - xx);
    d[15][1] = 6 * K(6) * xy;
}

#undef K
