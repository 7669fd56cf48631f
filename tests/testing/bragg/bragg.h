/* testing/bragg/bragg.h - scenes for tests of the instrument bragg, set up by hand, and their
 * images.
 *
 * A case is a scene with its arrays, without flags and files: what the tests of the render and of
 * its derivatives start from.
 */
#ifndef FATHOM_TESTING_BRAGG_H
#define FATHOM_TESTING_BRAGG_H

#include "instruments/bragg/ops/render/view.h"
#include "testing/test.h"

#include <fathom/backend.h>

typedef struct tb_case {
    br_scene s;
    double param[BR_PARAMS];
    double *table, *source, *mosaic_rotation; /* of malloc */
    uint16_t *mask;                           /* NULL: none */
} tb_case;

/* The crystal, beam and detector of most golden cases: 64 x 64 pixels of 0.4 mm at 61.3 mm, cell
 * 40 45 50, MOSFLM, no table, default_F 100, compat c. */
void tb_make(tb_case *c);
void tb_free(tb_case *c);
/* Square detector; the beam centre moves along. */
void tb_detector(tb_case *c, int64_t pixels, double pixel_mm, double distance_mm);
void tb_cells(tb_case *c, double a, double b, double n);
void tb_oversample(tb_case *c); /* as the reference chooses it */
void tb_table(tb_case *c, const char *hkl_file);
void tb_table_random(tb_case *c, t_random *r, int64_t reach);
void tb_wavelengths(tb_case *c, double dispersion, int64_t n);
void tb_domains(tb_case *c, t_random *r, double spread, int64_t n);
void tb_spindle(tb_case *c, double phi_deg, double osc_deg, int64_t n);
/* An image of 2463 x 2527 pixels over ten steps of the spindle, of which `rows` are rendered. */
void tb_founding(tb_case *c, int64_t domains, int64_t rows);
/* Sets steps and chain_start; to be called last. */
void tb_ready(tb_case *c);
/* A scene with every option drawn at random; small. */
void tb_random(tb_case *c, t_random *r);

/* Declares the axes of a render and its inputs, all but `latch`; the case outlives the graph. */
br_inputs tb_inputs(fth_graph *g, tb_case *c);

/* A graph of its own, for what tb_render does not do. */
typedef struct tb_engine {
    fth_context *ctx;
    fth_graph *g;
} tb_engine;
tb_engine tb_start(int threads);
void tb_stop(tb_engine *e);
/* Computes f64 values, each into memory of its size; memory_bytes as in tb_run. Fails the case on
 * any error, a mistake in the graph included. */
void tb_eval(tb_engine *e, const fth_val *out, int n, uint64_t memory_bytes, double *const *to);
/* An input [slow fast] of the graph that reads the caller's memory. */
fth_val tb_image(tb_engine *e, const tb_case *c, const char *name, double *data);

typedef struct tb_run {
    int threads;                /* 0: 1 */
    uint64_t memory_bytes;      /* limit of the plan; 0: none */
    uint64_t budget_bytes;      /* of the context; 0: as always */
    uint64_t device_bytes;      /* the same of a device */
    const fth_backend *backend; /* rendered on its device; NULL: */
    const char *backend_path;   /* on that of this library; NULL: on the CPU */
    bool may_not_fit;           /* a plan that is refused does not fail the case */
    bool through_a_file;        /* the image is not written in place */
    fth_dtype dtype;            /* FTH_F32 or FTH_F64 */
    void *image;                /* out; NULL: planned only */
    double *omega;              /* out, [slow]; NULL: not wanted */
    int64_t *outside;           /* out, [slow]; NULL: not wanted */
    int64_t latch;              /* out */
    fth_plan_info info;         /* out */
    fth_run_report report;      /* out */
    bool refused;               /* out */
} tb_run;
/* Plans and runs the operation, with its latch. Fails the case on any error. */
void tb_render(const tb_case *c, tb_run *run);
/* These loops, without the engine: f64 [slow fast]. Returns samples out of range. */
int64_t tb_loops(const tb_case *c, const br_loops *loops, double *image, double *omega);

/* The plain loop. */
int64_t tb_plain(const tb_case *c, double *image, double *omega);

#endif
