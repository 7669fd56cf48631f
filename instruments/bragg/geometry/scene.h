/* scene.h - one experiment as plain numbers, resolved from flags and passed to kernels.
 *
 * A scene holds everything that is not a parameter; the parameters of params.def are in a vector
 * beside it. br_place turns the two into vectors in the laboratory. All lengths in metres, angles
 * in radians; the cell in Angstrom until it is placed.
 */
#ifndef BRAGG_SCENE_H
#define BRAGG_SCENE_H

#include "dual.h"

#include <fathom/fathom.h>

#define BR_THOMSON 7.94079248018965e-30             /* r_e^2, m^2 */
#define BR_AVOGADRO 6.02214179e23                   /* per mol */
#define BR_FLUENCE 125932015286227086360700780544.0 /* 1 / r_e^2, photons per m^2 */

typedef enum br_quirk {
#define BR_QUIRK(id, ...) BR_QUIRK_##id,
#include "quirks.def"
#undef BR_QUIRK
    BR_QUIRKS
} br_quirk;
typedef struct br_quirk_info {
    const char *name, *on, *off;
} br_quirk_info;
extern const br_quirk_info br_quirks[BR_QUIRKS];
#define BR_QUIRKS_C ((uint32_t)((1u << BR_QUIRKS) - 1)) /* compat c: all of them; spec: none */

typedef enum br_convention {
    BR_ADXV,
    BR_MOSFLM,
    BR_DENZO,
    BR_XDS,
    BR_DIALS,
    BR_CUSTOM
} br_convention;
typedef enum br_pivot { BR_PIVOT_BEAM, BR_PIVOT_SAMPLE } br_pivot;
typedef enum br_shape { BR_SQUARE, BR_ROUND, BR_GAUSS, BR_TOPHAT } br_shape;
typedef enum br_precision { BR_F64, BR_F32 } br_precision;

/* No pointers and no padding that is not zeroed (memset it first): it is the attribute of the
 * operations, and hashed. */
typedef struct br_scene {
    /* detector, before it is placed */
    int64_t fast, slow; /* pixels */
    int64_t roi[4];     /* first and last fast, first and last slow that are rendered: inclusive,
                           inside the detector; last < first: none */
    double pixel;       /* edge */
    double detsize[2];  /* along fast, slow */
    double beam[3], fdet[3], sdet[3], odet[3], polar[3], vertical[3], spindle[3]; /* unit */
    double twotheta_axis[3];          /* as given in c mode, a unit vector in spec mode */
    double pix0[3];                   /* where pix0_given */
    double thickness, layer_step, mu; /* of the sensor */
    int64_t layers;
    /* sampling */
    int64_t oversample;
    double dmin; /* m; 0: none */
    int64_t phis;
    double phi_step;
    /* beam */
    double kahn;       /* polarisation factor */
    double water;      /* edge of the cube, m */
    double steps;      /* sources x mosaic x phi x oversample^2 */
    double weight_sum; /* of the sources */
    /* crystal */
    double mat[9];   /* 1/A, row x = (a*x b*x c*x), times the wavelength at which it was read
                        over 1e-10: it is divided by the wavelength in br_place */
    double cells[3]; /* Na Nb Nc */
    double fudge;
    /* structure factors: table [h k l] with one plane of zeros at the end of each axis */
    int64_t h_min, h_max, k_min, k_max, l_min, l_max;
    int64_t hkls; /* entries read; 0: no table, F is default_F everywhere */
    double default_F;
    /* first sample of the chain whose spindle angle is the true 0 (phi-carryover); -1: none. Its
     * index is (((((slow*fast_size + fast)*layers + layer)*O + subs)*O + subf)*sources + source)
     * *phis*mosaics, of a sample with phi = 0 and mosaic = 0 */
    int64_t chain_start;
    int64_t sources, mosaics;
    uint32_t quirks; /* mask of 1u << br_quirk */
    int32_t convention, pivot, shape, precision;
    uint8_t pix0_given, dist_is_close, curved, point_pixel, nopolar;
    uint8_t oversample_thick, oversample_polar, oversample_omega;
    uint8_t cell_given, mat_given, misset_given, interpolate,
        mosaic_given; /* mosaic_given: the cell is rotated */
    uint8_t masked;   /* there is a mask */
    uint8_t spare[2];
} br_scene;

static inline BR_BOTH bool br_has(const br_scene *s, br_quirk q)
{
    return s->quirks >> q & 1;
}

/* The scene in the laboratory, with derivatives. */
typedef struct br_placed {
    br_dual pix0[3], fdet[3], sdet[3], odet[3]; /* after rotations */
    br_dual close, distance;
    br_dual abc[3][3];  /* a b c, metres, before spindle and mosaic */
    br_dual star[3][3]; /* a* b* c*, 1/A */
    br_dual lambda, fluence, phi0;
    double volume; /* A^3 */
    double ratio;
    double fclose, sclose, fbeam, sbeam; /* final */
    double org[2], dials_origin[3];      /* pixels, mm */
} br_placed;

/* The geometry of model 4.1 to 4.4 and 5, from the scene and its parameters. NaN for impossible
 * values; the caller checks. */
BR_BOTH void br_place(const br_scene *scene, const double *param, br_placed *out);

/* Effective spindle angle of each step (model 10): n = scene->phis values. With the quirk, a step
 * at exactly 0 keeps the angle of the step before it. */
BR_BOTH void br_spindle_angles(const br_scene *scene, double phi0, double *angle);

/* Rotates v: X first, then Y, then Z, skipping angles of 0; about a unit axis. */
BR_BOTH void br_rotate(const double *v, double x, double y, double z, double *out);
BR_BOTH void br_rotate_axis(const double *v, const double *axis, double angle, double *out);

#endif
