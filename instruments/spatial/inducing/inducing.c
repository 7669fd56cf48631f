/* inducing.c - where the inducing points of a model lie, and of which group each is.
 *
 * Without groups: centres of k-means over all cells. With groups: centres within each group, as
 * many as its share; or centres over all cells that take the group of the cells around them
 * (`derived`), where groups without a centre get points from groups with too many. In every case
 * there are exactly as many points as the tensor has rows, and every group with cells has one; this
 * is checked at the end. Where the data have sections, "group" is here the pair of a section and a
 * group, numbered section * groups + group, or the section alone (model 21.3).
 */
#include "inducing.h"

#include "../neighbours/neighbours.h"

#include <math.h>
#include <string.h>

enum { VOTERS = 5 };

typedef struct placing {
    fth_context *ctx;
    fth_mem *mem;
    const sp_model *m;
    const float *xy;             /* of the cells */
    const int32_t *group;        /* of the cells; NULL: there are none */
    const int32_t *section;      /* of the cells; NULL: there are none */
    const sp_sections *sections; /* NULL likewise */
    int64_t types;               /* groups in a section: `groups` = sections * types */
    int64_t cells, groups, M;
    float *z;
    int32_t *of;      /* groups of the points; NULL: there are none */
    int64_t *n, *t;   /* cells and points of each group */
    int64_t *sn, *st; /* of each section */
    float *some;      /* room for the cells of one group */
    bool compat, allow_empty, donors;
    fth_texts *names;
} placing;

/* "neuron", "neuron of section A" or "all of section A". */
static const char *name_of(const void *user, int64_t g, char text[SP_GROUP_LABEL])
{
    const placing *p = user;
    const char *name = p->names ? fth_texts_get(p->names, g % p->types) : NULL;
    snprintf(text, SP_GROUP_LABEL, "%.80s%s%.80s",
             p->types == 1 && p->section ? "all"
             : name                      ? name
                                         : "?",
             p->section ? " of section " : "",
             p->section ? sp_sections_name(p->sections, g / p->types) : "");
    return text;
}

static fth_status centres(const placing *p, const float *xy, int64_t n, int64_t k, float *z,
                          fth_err *err)
{
    const sp_kmeans opt = {.k = k, .seed = p->m->set.seed, .stream = SP_STREAM_KMEANS};
    return sp_kmeans_run(z, p->ctx, xy, n, &opt, NULL, err);
}

/* ---- points within a group ---- */

/* Cells that have the code g. */
static void gather(placing *p, const int32_t *code, int64_t g)
{
    int64_t at = 0;
    for (int64_t i = 0; i < p->cells; i++) {
        if (code[i] != g) continue;
        memcpy(p->some + 2 * at, p->xy + 2 * i, 2 * sizeof(float));
        at++;
    }
}

/* The cell of a group nearest to its mean; ties: the first. */
static void middle(const float *xy, int64_t n, float z[2])
{
    double mean[2] = {0, 0}, least = HUGE_VAL;
    for (int64_t i = 0; i < n; i++)
        for (int d = 0; d < 2; d++) mean[d] += (double)xy[2 * i + d] / (double)n;
    for (int64_t i = 0; i < n; i++) {
        const double dx = (double)xy[2 * i] - mean[0], dy = (double)xy[2 * i + 1] - mean[1];
        if (dx * dx + dy * dy >= least) continue;
        least = dx * dx + dy * dy;
        memcpy(z, xy + 2 * i, 2 * sizeof(float));
    }
}

/* Append k points for group g. */
static fth_status add_points(placing *p, int64_t g, int64_t k, bool one_is_a_cell, int64_t *placed,
                             fth_err *err)
{
    float *z = p->z + 2 * *placed;
    char name[SP_GROUP_LABEL];
    gather(p, p->group, g);
    if (k == 1 && one_is_a_cell)
        middle(p->some, p->n[g], z);
    else
        FTH_TRY_CTX(centres(p, p->some, p->n[g], k, z, err), err,
                    "%lld inducing points of group '%s'", (long long)k, name_of(p, g, name));
    for (int64_t i = 0; i < k; i++) p->of[*placed + i] = (int32_t)g;
    *placed += k;
    return FTH_OK;
}

static fth_status allocate_missing(const placing *p, int64_t *t, fth_err *err)
{
    const sp_group_names names = {name_of, p};
    FTH_TRY_CTX(sp_allocate_missing(t, p->n, p->groups, p->M, p->allow_empty, &names, err), err,
                "each %s has inducing points of its own",
                !p->section     ? "group"
                : p->types == 1 ? "section"
                                : "cell type of each section");
    return FTH_OK;
}

static fth_status place_shares(placing *p, bool equal, fth_err *err)
{
    sp_allocate_shares(p->t, p->n, p->groups, p->M, equal, p->compat);
    sp_allocate_raise(p->t, p->n, p->groups);
    int64_t placed = 0, without = 0;
    for (int64_t g = 0; g < p->groups; g++) without += p->n[g] > 0 && p->t[g] == 0;
    if (without) { /* more groups than points: the same rule, and the same error, as below */
        memset(p->t, 0, sizeof *p->t * (size_t)p->groups);
        FTH_TRY(allocate_missing(p, p->t, err));
    }
    for (int64_t g = 0; g < p->groups; g++)
        if (p->t[g] > 0) FTH_TRY(add_points(p, g, p->t[g], false, &placed, err));
    return FTH_OK;
}

/* ---- points over all cells, and the groups they fall to ---- */

/* Cells vote with weight 1/distance; cells at the point itself outvote all others. */
static int32_t vote(const placing *p, const int32_t *cell, const double *d2, int64_t n)
{
    int32_t best = -1;
    double most = -1;
    while (p->section && p->section[cell[n - 1]] != p->section[cell[0]]) n--; /* farther ones */
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++) {
            if (p->group[cell[j]] != p->group[cell[i]]) continue;
            if (d2[0] > 0)
                sum += 1 / sqrt(d2[j]);
            else
                sum += !(d2[j] > 0); /* only cells at the point itself count */
        }
        const int32_t g = p->group[cell[i]];
        if (sum > most || (sum == most && g < best)) most = sum, best = g;
    }
    return best;
}

static fth_status label(placing *p, fth_err *err)
{
    sp_grid *grid = NULL;
    FTH_TRY(sp_grid_create(&grid, p->mem, p->xy, p->cells, err));
    double room[VOTERS * 8]; /* at least sp_grid_room(VOTERS) */
    const int64_t voters = p->cells < VOTERS ? p->cells : VOTERS;
    int32_t cell[VOTERS];
    double d2[VOTERS];
    memset(p->t, 0, sizeof *p->t * (size_t)p->groups);
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < p->M; i++) {
        sp_grid_nearest(grid, p->z + 2 * i, voters, -1, cell, d2, room);
        if (p->section && !sp_sections_holds(p->sections, p->section[cell[0]], p->z + 2 * i)) {
            s = FTH_FAIL(err, FTH_E_CONFIG, "inducing point %lld at (%g, %g) lies in no section",
                         (long long)i, (double)p->z[2 * i], (double)p->z[2 * i + 1]);
            fth_err_hint(err, "points of model.inducing_file are positions as " SP_X " has them");
            break;
        }
        p->of[i] = vote(p, cell, d2, voters);
        p->t[p->of[i]]++;
    }
    sp_grid_destroy(grid);
    return s;
}

static double between(const placing *p, int64_t i, int64_t j)
{
    const double dx = (double)p->z[2 * i] - (double)p->z[2 * j];
    const double dy = (double)p->z[2 * i + 1] - (double)p->z[2 * j + 1];
    return dx * dx + dy * dy;
}

typedef struct close_pair {
    double d2;
    int32_t other; /* the nearest point of the same group; -1: none */
} close_pair;

static void find_close(const placing *p, close_pair *pair, int64_t i)
{
    pair[i] = (close_pair){.d2 = HUGE_VAL, .other = -1};
    for (int64_t j = 0; j < p->M; j++)
        if (j != i && p->of[j] == p->of[i] && between(p, i, j) < pair[i].d2)
            pair[i] = (close_pair){.d2 = between(p, i, j), .other = (int32_t)j};
}

/* Take `count` points from group g, each time the one nearest to another of the group (ties: the
 * first): what is left covers it best. */
static void thin(placing *p, close_pair *pair, int32_t g, int64_t count)
{
    for (int64_t i = 0; i < p->M && count > 0; i++)
        if (p->of[i] == g) find_close(p, pair, i);
    for (; count > 0; count--) {
        int64_t best = -1;
        for (int64_t i = 0; i < p->M; i++)
            if (p->of[i] == g && (best < 0 || pair[i].d2 < pair[best].d2)) best = i;
        if (best < 0) return;
        p->of[best] = -1;
        for (int64_t i = 0; i < p->M; i++)
            if (p->of[i] == g && pair[i].other == best) find_close(p, pair, i);
    }
}

/* Remove points of group -1 by moving the others forward. */
static int64_t close_ranks(placing *p)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < p->M; i++) {
        if (p->of[i] < 0) continue;
        memmove(p->z + 2 * kept, p->z + 2 * i, 2 * sizeof(float));
        p->of[kept++] = p->of[i];
    }
    return kept;
}

/* Every group with more than one point gives one, drawn at random, for each missing group, up to
 * the number of its cells. */
static void give_by_donors(placing *p, int64_t *t)
{
    for (int64_t q = 0; q < p->groups; q++) {
        if (p->n[q] == 0 || p->t[q] > 0) continue;
        for (int64_t g = 0; g < p->groups && t[q] < p->n[q]; g++) {
            if (t[g] <= 1 || p->t[g] == 0) continue;
            int64_t nth = (int64_t)(fth_random_uniform_at(p->m->set.seed, q, SP_STREAM_KMEANS,
                                                          (INT64_C(1) << 40) + g) *
                                    (double)t[g]);
            for (int64_t i = 0; i < p->M; i++)
                if (p->of[i] == g && nth-- == 0) {
                    p->of[i] = -1;
                    break;
                }
            t[g]--;
            t[q]++;
        }
    }
}

/* p->t are the votes; `t` receives the final number of points of each group. */
static fth_status fill_missing(placing *p, int64_t *t, close_pair *pair, fth_err *err)
{
    int64_t missing = 0, present = 0;
    for (int64_t g = 0; g < p->groups; g++) {
        t[g] = p->t[g];
        missing += p->n[g] > 0 && p->t[g] == 0;
        present += p->n[g] > 0;
    }
    if (missing == 0) return FTH_OK;
    if (p->donors && present <= p->M)
        give_by_donors(p, t);
    else
        FTH_TRY(allocate_missing(p, t, err));
    for (int64_t g = 0; g < p->groups; g++) {
        int64_t have = 0;
        for (int64_t i = 0; i < p->M; i++) have += p->of[i] == g;
        thin(p, pair, (int32_t)g, have - t[g]);
    }
    int64_t placed = close_ranks(p);
    for (int64_t g = 0; g < p->groups; g++)
        if (p->t[g] == 0 && t[g] > 0) FTH_TRY(add_points(p, g, t[g], true, &placed, err));
    memcpy(p->t, t, sizeof *t * (size_t)p->groups);
    return FTH_OK;
}

/* Centres of all cells; of each section, by its share. */
static fth_status place_centres(placing *p, fth_err *err)
{
    if (!p->section) return centres(p, p->xy, p->cells, p->M, p->z, err);
    int64_t placed = 0;
    for (int64_t i = 0; i < p->cells; i++) p->sn[p->section[i]]++;
    sp_allocate_shares(p->st, p->sn, p->sections->n, p->M, false, false);
    sp_allocate_raise(p->st, p->sn, p->sections->n);
    for (int64_t s = 0; s < p->sections->n; s++) {
        if (p->st[s] == 0) continue;
        gather(p, p->section, s);
        FTH_TRY_CTX(centres(p, p->some, p->sn[s], p->st[s], p->z + 2 * placed, err), err,
                    "%lld inducing points of section '%s'", (long long)p->st[s],
                    sp_sections_name(p->sections, s));
        placed += p->st[s];
    }
    return FTH_OK;
}

static fth_status place_derived(placing *p, fth_err *err)
{
    FTH_TRY(place_centres(p, err));
    FTH_TRY(label(p, err));
    void *work = NULL;
    const uint64_t counts = (sizeof(int64_t) * (uint64_t)p->groups + 63) / 64 * 64;
    FTH_TRY(fth_mem_take(p->mem, FTH_MEM_ANY, counts + sizeof(close_pair) * (uint64_t)p->M,
                         "inducing points that are close", &work, err));
    const fth_status s = fill_missing(p, work, (close_pair *)(void *)((char *)work + counts), err);
    fth_mem_release(p->mem, work, NULL);
    return s;
}

/* ---- points from a file ---- */

static fth_status read_points(const placing *p, const char *path, fth_source *s, fth_err *err)
{
    if (s->n_axes != 2 || s->size[1] != 2 || (s->dtype != FTH_F32 && s->dtype != FTH_F64))
        return FTH_FAIL(
            err, FTH_E_FILE_SHAPE,
            "%s: inducing points are f32 or f64 [points, 2], but this is %s with %d axes", path,
            fth_dtype_name(s->dtype), s->n_axes);
    if (s->size[0] != p->M) {
        const fth_status status =
            FTH_FAIL(err, FTH_E_CONFIG, "%s has %lld inducing points, the model has %lld", path,
                     (long long)s->size[0], (long long)p->M);
        fth_err_hint(err, "set model.num_inducing to %lld (never more than there are cells)",
                     (long long)s->size[0]);
        return status;
    }
    for (int64_t i = 0; i < p->M; i++) {
        union {
            double wide[2];
            float narrow[2];
        } row;
        FTH_TRY(s->read(s->self, (int64_t[]){i, 0}, (int64_t[]){1, 2}, &row, err));
        for (int d = 0; d < 2; d++) {
            const double v = s->dtype == FTH_F64 ? row.wide[d] : (double)row.narrow[d];
            if (!isfinite(v))
                return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: inducing point %lld is not finite",
                                path, (long long)i);
            p->z[2 * i + d] = (float)v;
        }
    }
    return FTH_OK;
}

static fth_status place_from_file(placing *p, const char *path, fth_err *err)
{
    fth_source s;
    FTH_TRY(fth_npy_open(&s, p->mem, path, err));
    const fth_status status = read_points(p, path, &s, err);
    fth_source_close(&s);
    if (status != FTH_OK || !p->of) return status;
    return label(p, err);
}

/* ---- all together ---- */

/* Every group with cells has a point, unless it may be empty. */
static fth_status check(const placing *p, const char *file, fth_err *err)
{
    int64_t total = 0;
    for (int64_t g = 0; g < p->groups; g++) {
        total += p->t[g];
        if (p->n[g] == 0 || p->t[g] > 0 || p->allow_empty) continue;
        char name[SP_GROUP_LABEL];
        const fth_status s =
            FTH_FAIL(err, file ? FTH_E_CONFIG : FTH_E_INTERNAL,
                     "group '%s' has %lld cells and no inducing point%s%s", name_of(p, g, name),
                     (long long)p->n[g], file ? " among those of " : "", file ? file : "");
        if (file) fth_err_hint(err, "add a point near its cells, or set model.allow_empty_groups");
        return s;
    }
    if (total != p->M)
        return FTH_FAIL(err, FTH_E_INTERNAL, "%lld inducing points were placed, not %lld",
                        (long long)total, (long long)p->M);
    return FTH_OK;
}

static fth_status place_groups(placing *p, const char *file, fth_err *err)
{
    for (int64_t i = 0; i < p->cells; i++) p->n[p->group[i]]++;
    if (file)
        FTH_TRY(place_from_file(p, file, err));
    else if (p->m->set.inducing_allocation == SP_DERIVED && p->m->set.groups)
        FTH_TRY(place_derived(p, err));
    else
        FTH_TRY(
            place_shares(p, p->m->set.inducing_allocation == SP_EQUAL && p->m->set.groups, err));
    return check(p, file, err);
}

static fth_status with_groups(placing *p, const char *file, int64_t *per_group, fth_err *err)
{
    const uint64_t counts = sizeof(int64_t) * (uint64_t)p->groups;
    const uint64_t sections = sizeof(int64_t) * (uint64_t)(p->section ? p->sections->n : 0);
    void *work = NULL;
    FTH_TRY(fth_mem_take(p->mem, FTH_MEM_ANY,
                         2 * (counts + sections) + 2 * sizeof(float) * (uint64_t)p->cells,
                         "cells of a group", &work, err));
    p->n = work;
    p->t = p->n + p->groups;
    p->sn = p->t + p->groups;
    p->st = p->sn + (p->section ? p->sections->n : 0);
    p->some = (float *)(void *)((char *)work + 2 * (counts + sections));
    memset(work, 0, 2 * (counts + sections));
    const fth_status s = place_groups(p, file, err);
    for (int64_t g = 0; s == FTH_OK && per_group && g < p->groups; g++) {
        if (g < p->types) per_group[g] = 0;
        per_group[g % p->types] += p->t[g];
    }
    fth_mem_release(p->mem, work, NULL);
    return s;
}

/* Sections and groups as one code; groups of the points afterwards. */
static fth_status with_sections(placing *p, const char *file, int64_t *per_group, fth_err *err)
{
    void *work = NULL;
    int32_t *to = p->of;
    p->types = to ? p->groups : 1;
    p->groups = p->sections->n * p->types;
    FTH_TRY(fth_mem_take(p->mem, FTH_MEM_ANY, sizeof(int32_t) * (uint64_t)(p->cells + p->M),
                         "sections and groups", &work, err));
    int32_t *code = work;
    for (int64_t i = 0; i < p->cells; i++)
        code[i] = p->section[i] * (int32_t)p->types + (to ? p->group[i] : 0);
    p->group = code;
    p->of = code + p->cells;
    const fth_status s = with_groups(p, file, to ? per_group : NULL, err);
    for (int64_t i = 0; s == FTH_OK && to && i < p->M; i++) to[i] = p->of[i] % (int32_t)p->types;
    fth_mem_release(p->mem, work, NULL);
    return s;
}

static fth_status every_cell(placing *p, int64_t *per_group, fth_err *err)
{
    if (p->M != p->cells)
        return FTH_FAIL(err, FTH_E_INTERNAL, "a local model of %lld cells with %lld points",
                        (long long)p->cells, (long long)p->M);
    memcpy(p->z, p->xy, 2 * sizeof(float) * (size_t)p->cells);
    if (p->of) memcpy(p->of, p->group, sizeof(int32_t) * (size_t)p->cells);
    for (int64_t g = 0; per_group && g < p->groups; g++) per_group[g] = 0;
    for (int64_t i = 0; per_group && i < p->cells; i++) per_group[p->group[i]]++;
    return FTH_OK;
}

fth_status sp_inducing_place(sp_model *m, fth_context *ctx, const sp_data *data,
                             const fth_config *cfg, int64_t *per_group, fth_err *err)
{
    placing p = {.ctx = ctx,
                 .mem = fth_context_mem(ctx),
                 .m = m,
                 .xy = fth_tensor_data(data->xy),
                 .group = fth_tensor_data(data->group),
                 .section = data->section ? fth_tensor_data(data->section) : NULL,
                 .sections = data->section ? &data->sections : NULL,
                 .types = data->size.groups,
                 .cells = data->size.cells,
                 .groups = data->size.groups,
                 .M = fth_tensor_size(m->Z, 0),
                 .z = fth_tensor_data(m->Z),
                 .of = m->groupsZ ? fth_tensor_data(m->groupsZ) : NULL,
                 .names = data->group_names};
    if (m->set.local) return every_cell(&p, per_group, err);
    const bool given = cfg && fth_config_has(cfg, "model.inducing_file");
    const char *file = given ? fth_config_text(cfg, "model.inducing_file") : NULL;
    if (cfg && p.of) {
        p.compat = fth_config_bool(cfg, "model.allocation_compat");
        p.allow_empty = fth_config_bool(cfg, "model.allow_empty_groups");
        p.donors = fth_config_choice(cfg, "model.missing_group_rule") == 1;
    }
    if (per_group) memset(per_group, 0, sizeof *per_group * (size_t)p.groups);
    if (p.section) return with_sections(&p, file, per_group, err);
    if (p.of) return with_groups(&p, file, per_group, err);
    return file ? place_from_file(&p, file, err) : centres(&p, p.xy, p.cells, p.M, p.z, err);
}
