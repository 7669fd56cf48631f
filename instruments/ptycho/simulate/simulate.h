/* simulate.h - a simulated scan: object, probe, positions, noise. */
#ifndef PTYCHO_SIMULATE_H
#define PTYCHO_SIMULATE_H

#include "../scan/scan.h"

extern const fth_verb pt_verb_simulate;

typedef enum pt_scan_kind {
    PT_SCAN_RANDOM,
    PT_SCAN_RASTER,
    PT_SCAN_SPIRAL,
    PT_SCAN_FERMAT,
    PT_SCAN_KINDS
} pt_scan_kind;

typedef struct pt_simulation {
    int64_t rows, cols; /* of the object */
    fth_c128 *object;   /* [orow ocol] */
    int64_t N, modes;
    fth_c128 *probe; /* [mode row col] */
    int64_t n;
    double *x, *y;   /* [scan] */
    double nphotons; /* of a pattern, on average */
    bool noise;
    int64_t noise_seed;
    bool counts; /* sqrt(counts) as they are; else divided by the intensity scale */
} pt_simulation;

/* Positions of a kind; random ones are drawn as PtychoPINN does, all x and then all y. */
void pt_positions_make(pt_scan_kind kind, uint32_t seed, double buffer, double jitter, int64_t rows,
                       int64_t cols, int64_t n, double *x, double *y);
/* s = sqrt(nphotons / mean_j sum |P O_j|^2); 0 where no light falls on the object. */
double pt_intensity_scale(fth_context *ctx, const pt_simulation *m, fth_err *err);
/* Amplitudes as `diff3d` has them, f32 [scan row col], into a sink; *scale is the intensity scale.
 * Call NULL outside of a stage. */
fth_status pt_simulate(fth_context *ctx, const fth_stage_call *call, const pt_simulation *m,
                       const fth_sink *out, double *scale, fth_err *err);

/* The simulation that a config describes: object, probe and positions in memory of `mem`; and its
 * end. `test`: of the second scan, with other positions and noise. */
fth_status pt_simulation_make(pt_simulation *m, fth_context *ctx, const fth_config *cfg, bool test,
                              fth_err *err);
void pt_simulation_free(pt_simulation *m, fth_mem *mem);
/* Simulate and write the NPZ file. */
fth_status pt_simulation_write(fth_context *ctx, const fth_stage_call *call, const fth_config *cfg,
                               bool test, const char *path, fth_err *err);
/* The sizes of a simulation, from the config and the headers of files; without arrays. */
fth_status pt_simulation_sizes(pt_simulation *m, fth_context *ctx, const fth_config *cfg, bool test,
                               fth_err *err);
/* What making its object takes, the object included, and what is held while patterns are made. */
uint64_t pt_simulation_bytes(const pt_simulation *m, const fth_config *cfg);
uint64_t pt_simulation_held(const pt_simulation *m);
/* The plan that would make the patterns, with its graph, which ends after it; NULL: see `err`. */
fth_plan *pt_simulation_plan(fth_context *ctx, const pt_simulation *m, fth_graph **g, fth_err *err);
/* The prediction of a stage that simulates. */
fth_status pt_simulation_predict(const fth_stage_call *call, bool test, fth_stage_plan *out,
                                 FILE *show, fth_err *err);

#endif
