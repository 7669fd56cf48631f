/* noise.h - the response of a detector to an image of photons (model 15.1), as operations.
 *
 * With the reference's generators the draws are one serial stream: all pixels are counted first,
 * then all are read out from where the stream is. So the counting also returns the state of the
 * generator, and the read-out starts with the state after the last row.
 */
#ifndef BRAGG_NOISE_H
#define BRAGG_NOISE_H

#include "../../geometry/scene.h"
#include "../../random/random.h"

/* Plain bytes: the attribute of the operation. */
typedef struct br_counting {
    double scale;       /* photons per unit of the image */
    double flicker;     /* relative, of the source from pixel to pixel */
    double calibration; /* relative, of the pixels */
    br_ran1 start;      /* generator before the first draw */
    int64_t seed, calib_seed;
} br_counting;

/* Photons counted, f32 [slow fast], from an image f32 [slow fast]; fth_out 1: i64 [slow
 * noise_word], the generator after each row. Declares the axis noise_word. */
fth_val br_count_(fth_site site, fth_val image, const br_counting *counting);
#define br_count(image, counting) br_count_(FTH_HERE, (image), (counting))
/* Its last row, i64 [noise_word]. */
fth_val br_count_end(fth_val counted);
enum { BR_NOISE_WORDS = (sizeof(br_ran1) + 2 * sizeof(int64_t) + 7) / 8 };
/* The signal f64 [slow fast] with `sigma` times a normal deviate added to each pixel, in order;
 * `after` is from br_count_end. */
fth_val br_read_out_(fth_site site, fth_val signal, fth_val after, double sigma);
#define br_read_out(signal, after, sigma) br_read_out_(FTH_HERE, (signal), (after), (sigma))

/* One Poisson deviate per pixel of the ROI in serial order, from the reference's generator: f32
 * image [slow fast] to f32 counts, 0 outside. `seed` as stored (negated). The stream is carried
 * from row to row. */
fth_val br_serial_poisson_(fth_site site, const br_scene *scene, fth_val image,
                           const br_ran1 *start);
#define br_serial_poisson(scene, image, start)                                                     \
    br_serial_poisson_(FTH_HERE, (scene), (image), (start))

#endif
