/* inducing.h - where the inducing points lie: k-means, and how many each group gets. */
#ifndef SPATIAL_INDUCING_H
#define SPATIAL_INDUCING_H

#include "../model/model.h"

typedef struct sp_kmeans {
    int64_t k;
    int restarts;   /* 0: 10 */
    int iterations; /* 0: 300 */
    int64_t seed, stream;
    int64_t worth; /* least number of distances of an iteration to use a device; 0: 16 Mi */
    /* Called with the fraction done; false: stop with FTH_E_CANCELLED. May be NULL. */
    bool (*progress)(void *user, double fraction);
    void *user;
} sp_kmeans;
/* Centres f32 [k][2] of n places, greedy k-means++ and Lloyd (model 11.1); the same bits with any
 * number of workers. Fewer than k distinct places: FTH_E_NUMERIC that says how many there are. */
fth_status sp_kmeans_run(float *centre, fth_context *ctx, const float *xy, int64_t n,
                         const sp_kmeans *opt, double *inertia, fth_err *err);

/* Counts per group, t[G], for T points; n[G] are the cells of each group (model 11.2). Before the
 * step that raises every group to one. `compat`: the first group in order takes the whole
 * remainder. */
void sp_allocate_shares(int64_t *t, const int64_t *n, int64_t groups, int64_t T, bool equal,
                        bool compat);
/* Every group with cells gets at least one, taken from the largest. */
void sp_allocate_raise(int64_t *t, const int64_t *n, int64_t groups);
/* Names of groups, for errors. */
enum { SP_GROUP_LABEL = 200 };
typedef struct sp_group_names {
    const char *(*name)(const void *user, int64_t group, char text[SP_GROUP_LABEL]);
    const void *user;
} sp_group_names;
/* The rule for groups that a vote left without points (model 11.4): d[G] in, the final counts out;
 * the sum stays T. FTH_E_CONFIG, with the groups, when T is too small and not `allow_empty`; names
 * NULL: by their numbers. */
fth_status sp_allocate_missing(int64_t *d, const int64_t *n, int64_t groups, int64_t T,
                               bool allow_empty, const sp_group_names *names, fth_err *err);

/* Z and groupsZ of a model, from its data and settings; `file` (may be NULL) gives Z instead. The
 * number of points is exactly m->set.M, and every group has one. per_group (may be NULL): [G]. */
fth_status sp_inducing_place(sp_model *m, fth_context *ctx, const sp_data *data,
                             const fth_config *cfg, int64_t *per_group, fth_err *err);

#endif
