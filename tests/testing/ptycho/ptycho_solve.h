/* testing/ptycho/ptycho_solve.h - golden cases of the solvers, and runs of them. */
#ifndef FATHOM_TESTING_PTYCHO_SOLVE_H
#define FATHOM_TESTING_PTYCHO_SOLVE_H

#include "instruments/ptycho/solve/solver.h"
#include "testing/test.h"

#include <complex.h>

#define PS_I ((double complex)_Complex_I)
#define PS_GOLDEN "tests/golden/ptycho/"

typedef struct ps_case {
    fth_context *ctx;
    fth_mem *mem;
    pt_solve_data data;
    fth_tensor *patterns, *masks;
    double *x, *y;
    fth_c128 *probe, *object; /* start */
    double complex *factor;   /* g9: probes of the file times this are ours */
} ps_case;

void ps_context(ps_case *c, const char *memory, int threads, bool device);
fth_tensor *ps_member(fth_mem *mem, const char *path, const char *name);
/* ptypy's case of 20 frames: what its engines start from; on the device of FATHOM_TEST_DEVICE. */
void ps_open_g9(ps_case *c, const char *memory, int threads, bool device);
/* The case of the table: 121 patterns of 64^2. `photons` 0: the counts of the file; else counts
 * of that many photons; two: a second mode, x/40 of the first. The probe to start
 * from has another curvature. */
void ps_open_g10(ps_case *c, const char *memory, int threads, double photons, bool two);
void ps_close(ps_case *c);

pt_solve_options ps_options(pt_algorithm algorithm, int64_t iterations);
pt_solver *ps_solve(ps_case *c, const pt_solve_options *opt);
double complex ps_object(const pt_solver *s, int64_t y, int64_t x); /* in the frame of the file */
double complex ps_probe(const pt_solver *s, int64_t mode, int64_t i);
/* Relative error of the object in the lit middle of g10, after scale, phase and ramp. */
double ps_g10_error(ps_case *c, const pt_solver *s);

#endif
