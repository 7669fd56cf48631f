/* metrics.h - how well a reconstruction agrees with the truth, in amplitude and in phase.
 *
 * Two complex images are cut to their common size, the second is registered to the first, edges are
 * trimmed, phases are aligned, amplitudes scaled to one mean; then every number of metrics.def.
 * A metric that is undefined for these images is NaN, and `why` gives the reason.
 */
#ifndef PTYCHO_METRICS_METRICS_H
#define PTYCHO_METRICS_METRICS_H

#include "register.h"

typedef enum pt_metric {
#define PT_METRIC(id, name, decimals, doc) PT_METRIC_##id,
#include "metrics.def"
#undef PT_METRIC
    PT_METRICS
} pt_metric;
const char *pt_metric_name(pt_metric m);
int pt_metric_decimals(pt_metric m);

typedef enum pt_part { PT_PART_AMPLITUDE, PT_PART_PHASE, PT_PARTS } pt_part;
typedef enum pt_align { PT_ALIGN_PLANE, PT_ALIGN_MEAN } pt_align;

typedef struct pt_metrics_options {
    bool skip_registration;
    pt_align align;
    int upsample;       /* steps in a pixel of the registration; 0: 50 */
    int64_t trim;       /* pixels cut from each side before comparing; negative: none, 0: 2 */
    double frc_sigma;   /* rings; smooths the correlation curves; 0: not */
    pt_image *aligned;  /* takes the registered and cut reconstruction; NULL: not wanted */
    pt_image *compared; /* and the truth it is compared with */
} pt_metrics_options;

typedef struct pt_metrics {
    fth_mem *mem;
    double value[PT_METRICS][PT_PARTS];
    const char *why[PT_METRICS][PT_PARTS]; /* NULL: the value is defined */
    double correlation;                    /* of complex numbers; NaN: one is constant */
    double *frc[PT_PARTS];                 /* by ring */
    double *ring_size;                     /* how many frequencies a ring has */
    int64_t rings, side;                   /* of the square that was transformed */
    int64_t rows, cols;                    /* that were compared */
    pt_shift shift;
    bool registered;
    bool far; /* the shift is more than a quarter of the image: suspicious */
} pt_metrics;

fth_status pt_metrics_compute(pt_metrics *out, fth_context *ctx, const pt_image *truth,
                              const pt_image *recon, const pt_metrics_options *opt, fth_err *err);
void pt_metrics_clear(pt_metrics *m); /* an empty one is allowed */

#endif
