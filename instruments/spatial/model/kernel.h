/* kernel.h - covariance functions: values of a graph, and single numbers on the host. */
#ifndef SPATIAL_KERNEL_H
#define SPATIAL_KERNEL_H

#include "model.h"

typedef struct sp_kernel_info {
    const char *name;
    double root, power;
} sp_kernel_info;
extern const sp_kernel_info sp_kernels[SP_KERNEL_COUNT];

/* Parameters of a covariance function. */
typedef struct sp_cov {
    sp_kernel kernel;
    double sigma, lengthscale;
    fth_val log_ell;    /* f64 [factor], in a graph: ln of a lengthscale of each factor; empty:
                           `lengthscale` is that of all */
    const char *factor; /* the axis of log_ell: blocks get it as their first */
    bool groups;
    double alpha;           /* group_diff_param */
    const double *distance; /* squared distances [G][G]; NULL: 1.000002 between any two */
    fth_tensor *table;      /* the tensor of `distance`, for graphs */
    double gap; /* places so far apart are of different sections: 0 between them; 0: one section */
    int64_t n_groups;
} sp_cov;
sp_cov sp_cov_of(const sp_model *m);
/* nu between two groups. */
double sp_cov_nu(const sp_cov *c, int64_t g, int64_t h);
/* k(a, b), between points of groups g and h. The reference for the graph and the vectorised
 * kernels. */
double sp_cov_at(const sp_cov *c, const float a[2], int64_t g, const float b[2], int64_t h);
/* The same as values: a f32 [rows dim], b f32 [cols dim] -> real [rows cols]; ga i32 [rows] and gb
 * i32 [cols] where there are groups, else poison. */
fth_val sp_cov_block(fth_graph *g, const sp_cov *c, fth_dtype real, fth_val a, fth_val ga,
                     const char *rows, fth_val b, fth_val gb, const char *cols);
/* The same, and its slope in ln lengthscale, with the same axes (model 19.2). */
fth_val sp_cov_block_slope(fth_graph *g, const sp_cov *c, fth_dtype real, fth_val a, fth_val ga,
                           const char *rows, fth_val b, fth_val gb, const char *cols,
                           fth_val *slope);
/* Between points whose groups have this nu (1: the same group). */
fth_val sp_cov_block_nu(fth_graph *g, const sp_cov *c, fth_dtype real, fth_val a, const char *rows,
                        fth_val b, double nu);
/* As if the points a were of each group in turn: real [group rows cols]. */
fth_val sp_cov_block_groups(fth_graph *g, const sp_cov *c, fth_dtype real, fth_val a,
                            const char *rows, fth_val b, fth_val gb, const char *cols);
/* Squared distances of the embedding of a matrix of distances between groups (model 4.3), f64
 * [G][G]: read from a .npy or .csv file, checked for symmetry and a zero diagonal. */
fth_status sp_group_distance_read(fth_tensor **out, fth_mem *mem, const char *path, int64_t groups,
                                  fth_err *err);

#endif
