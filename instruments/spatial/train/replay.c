/* replay.c - batches, noise and starting values from an .npz file. */
#include "replay.h"

#include "../read/matrix.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

bool sp_replay_has(const sp_replay *r, const char *name)
{
    for (int64_t i = 0; r->npz && i < fth_npz_count(r->npz); i++)
        if (strcmp(fth_npz_name(r->npz, i), name) == 0) return true;
    return false;
}

static bool is_index(fth_dtype t)
{
    return fth_dtype_is_int(t);
}

static bool is_number(fth_dtype t)
{
    return t == FTH_F32 || t == FTH_F64;
}

static fth_status open_rows(sp_replay *r, const char *name, int n_axes, bool index, fth_source *out,
                            fth_err *err)
{
    if (!sp_replay_has(r, name)) return FTH_OK;
    FTH_TRY(fth_npz_source(r->npz, name, out, err));
    if (out->n_axes == n_axes && (index ? is_index(out->dtype) : is_number(out->dtype)) &&
        out->size[0] > 0)
        return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: %s has %d axes of %s; %d of %s are expected",
                    r->path, name, out->n_axes, fth_dtype_name(out->dtype), n_axes,
                    index ? "whole numbers" : "f32 or f64");
}

/* ---- lengths ---- */

/* The length of an axis of an array of the file, where there is one. */
static fth_status take_length(sp_replay *r, const char *name, int axis, int64_t *length,
                              fth_err *err)
{
    if (!sp_replay_has(r, name)) return FTH_OK;
    fth_source s = {0};
    FTH_TRY(fth_npz_source(r->npz, name, &s, err));
    const bool there = axis < s.n_axes && s.size[axis] > 0;
    if (there) *length = s.size[axis];
    fth_source_close(&s);
    return there ? FTH_OK
                 : FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: %s has too few axes", r->path, name);
}

static fth_status take_lengths(sp_replay *r, sp_settings *set, fth_err *err)
{
    if (r->idx.read) set->max_iter = r->idx.size[0], set->batch_size = r->idx.size[1];
    if (r->idy.read) set->y_batch_size = r->idy.size[1];
    if (set->batch_size > set->cells || set->y_batch_size > set->genes)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                        "%s: batches of %" PRId64 " cells and %" PRId64 " genes; there are %" PRId64
                        " and %" PRId64,
                        r->path, set->batch_size, set->y_batch_size, set->cells, set->genes);
    if (set->spatial && !set->local) FTH_TRY(take_length(r, "Z", 0, &set->M, err));
    if (set->local) {
        FTH_TRY(take_length(r, "nb_for_kl", 1, &set->K, err));
        FTH_TRY(take_length(r, "init_Lu", 2, &set->R, err));
    }
    const int64_t want[4] = {set->max_iter, set->E, sp_factors(set), set->batch_size};
    for (int a = 0; r->eps.read && a < 4; a++)
        if (a == 0 ? r->eps.size[a] < want[a] : r->eps.size[a] != want[a])
            return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                            "%s: axis %d of eps [iteration draw factor cellb] has %" PRId64
                            " elements; %" PRId64 " are needed",
                            r->path, a, r->eps.size[a], want[a]);
    if (r->idy.read && r->idy.size[0] < set->max_iter)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                        "%s: idy has %" PRId64 " iterations; %" PRId64 " are needed", r->path,
                        r->idy.size[0], set->max_iter);
    return FTH_OK;
}

static uint64_t row_bytes(const fth_source *s)
{
    uint64_t n = s->read ? (uint64_t)fth_dtype_size(s->dtype) : 0;
    for (int a = 1; a < s->n_axes; a++) n *= (uint64_t)s->size[a];
    return n;
}

static fth_status open_file(sp_replay *r, sp_settings *set, fth_err *err)
{
    FTH_TRY(fth_npz_open(&r->npz, r->mem, r->path, err));
    FTH_TRY(open_rows(r, "idx", 2, true, &r->idx, err));
    FTH_TRY(open_rows(r, "idy", 2, true, &r->idy, err));
    if (set->mode != SP_LOWER_BOUND) FTH_TRY(open_rows(r, "eps", 4, false, &r->eps, err));
    FTH_TRY(take_lengths(r, set, err));
    const fth_source *row[] = {&r->idx, &r->idy, &r->eps};
    uint64_t most = 8;
    for (int i = 0; i < 3; i++) most = row_bytes(row[i]) > most ? row_bytes(row[i]) : most;
    return fth_mem_take(r->mem, FTH_MEM_ANY, most, "replay", &r->room, err);
}

fth_status sp_replay_open(sp_replay *r, fth_mem *mem, const char *path, sp_settings *set,
                          fth_err *err)
{
    *r = (sp_replay){.mem = mem};
    snprintf(r->path, sizeof r->path, "%s", path);
    const fth_status s = open_file(r, set, err);
    if (s != FTH_OK) sp_replay_close(r);
    return s;
}

void sp_replay_close(sp_replay *r)
{
    if (!r->mem) return;
    fth_source_close(&r->idx);
    fth_source_close(&r->idy);
    fth_source_close(&r->eps);
    fth_npz_close(r->npz);
    if (r->room) (void)fth_mem_release(r->mem, r->room, NULL);
    *r = (sp_replay){0};
}

/* ---- values ---- */

static double value_at(fth_dtype t, const void *v, int64_t i)
{
    return sp_number_at(t, v, i);
}

static void put_values(fth_tensor *to, fth_dtype from, const void *v)
{
    void *d = fth_tensor_data(to);
    const fth_dtype t = fth_tensor_dtype(to);
    const int64_t n = (int64_t)fth_tensor_bytes(to) / fth_dtype_size(t);
    for (int64_t i = 0; i < n; i++) {
        const double x = value_at(from, v, i);
        if (t == FTH_F64) ((double *)d)[i] = x;
        if (t == FTH_F32) ((float *)d)[i] = (float)x;
        if (t == FTH_I32) ((int32_t *)d)[i] = fabs(x) <= INT32_MAX ? (int32_t)x : -1;
    }
}

static fth_status replace(sp_replay *r, const char *name, fth_tensor *to, fth_err *err)
{
    if (!to || !sp_replay_has(r, name)) return FTH_OK;
    fth_source s = {0};
    fth_tensor *all = NULL;
    FTH_TRY(fth_npz_source(r->npz, name, &s, err));
    fth_status st = FTH_OK;
    bool same = s.n_axes == fth_tensor_axes(to) &&
                (fth_tensor_dtype(to) == FTH_I32 ? is_index(s.dtype) : is_number(s.dtype));
    for (int a = 0; same && a < s.n_axes; a++) same = s.size[a] == fth_tensor_size(to, a);
    if (!same)
        st = FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: %s does not have the shape of the model", r->path,
                      name);
    if (st == FTH_OK) st = fth_source_load(&s, r->mem, name, &all, err);
    if (st == FTH_OK) put_values(to, s.dtype, fth_tensor_data(all));
    fth_tensor_release(all);
    fth_source_close(&s);
    return st;
}

fth_status sp_replay_start(sp_replay *r, sp_model *m, fth_err *err)
{
    const struct {
        const char *name;
        fth_tensor *to;
    } row[] = {{"W_init", m->param[SP_P_W]},
               {"init_theta_raw", m->param[SP_P_THETA]},
               {"init_log_ell", m->param[SP_P_ELL]},
               {m->set.spatial ? "init_mean" : "init_mu", m->param[SP_P_MEAN]},
               {"init_mu", m->param[SP_P_MU]},
               {"init_sd_raw", m->param[SP_P_RAW]},
               {"init_theta1", m->param[SP_P_NATURAL1]},
               {"init_theta2", m->param[SP_P_NATURAL2]},
               {"init_Lu_raw", m->param[SP_P_LU]},
               {"init_Lu", m->param[SP_P_LAM]},
               {"Z", m->Z},
               {"gZ", m->groupsZ},
               {"nb_inference", m->nbr_inf},
               {"nb_for_kl", m->nbr_kl}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        FTH_TRY(replace(r, row[i].name, row[i].to, err));
    return r->npz ? sp_model_check(m, r->path, err) : FTH_OK;
}

/* ---- iterations ---- */

static fth_status read_row(sp_replay *r, const fth_source *s, int64_t i, fth_err *err)
{
    const int64_t lo[4] = {i, 0, 0, 0}, n[4] = {1, s->size[1], s->size[2], s->size[3]};
    return s->read(s->self, lo, n, r->room, err);
}

static fth_status read_list(sp_replay *r, const fth_source *s, int64_t i, int64_t most,
                            int64_t *out, fth_err *err)
{
    if (!s->read || !out) return FTH_OK;
    FTH_TRY(read_row(r, s, i, err));
    for (int64_t k = 0; k < s->size[1]; k++) {
        out[k] = (int64_t)value_at(s->dtype, r->room, k);
        if (out[k] < 0 || out[k] >= most)
            return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                            "%s: iteration %" PRId64 " asks for number %" PRId64 " of %" PRId64,
                            r->path, i, out[k], most);
    }
    return FTH_OK;
}

fth_status sp_replay_batch(sp_replay *r, int64_t i, int64_t *cell, int64_t *gene,
                           const sp_settings *set, fth_err *err)
{
    FTH_TRY(read_list(r, &r->idx, i, set->cells, cell, err));
    return read_list(r, &r->idy, i, set->genes, gene, err);
}

fth_status sp_replay_noise(sp_replay *r, int64_t i, fth_tensor *eps, fth_err *err)
{
    FTH_TRY(read_row(r, &r->eps, i, err));
    put_values(eps, r->eps.dtype, r->room);
    return FTH_OK;
}
