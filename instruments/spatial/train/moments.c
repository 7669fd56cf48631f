/* moments.c - see moments.h. */
#include "moments.h"

#include "../model/slots.h"

static fth_status check_room(const sp_moments *s, const char *dir, fth_err *err)
{
    fth_path_disk_info disk;
    if (fth_path_disk(dir, &disk, NULL) != FTH_OK) return FTH_OK; /* reported when creating files */
    if (disk.free_bytes >= s->bytes) return FTH_OK;
    char need[24], have[24];
    FTH_FAIL(err, FTH_E_NO_FIT, "the moments of the optimiser need %s in %s, which has %s free",
             fth_mem_format_size(s->bytes, need, sizeof need), dir,
             fth_mem_format_size(disk.free_bytes, have, sizeof have));
    fth_err_hint(err, "give another folder with --scratch, or set training.moments: memory");
    return FTH_E_NO_FIT;
}

static fth_status add(sp_moments *s, int which, int p, const char *dir, fth_err *err)
{
    sp_model *m = s->model;
    fth_tensor *like = m->param[p];
    fth_scratch **f = &s->file[which][p];
    int64_t size[FTH_MAX_AXES];
    for (int a = 0; a < fth_tensor_axes(like); a++) size[a] = fth_tensor_size(like, a);
    FTH_TRY(fth_scratch_create(f, m->mem, s->planning ? NULL : dir, "moments", m->real,
                               fth_tensor_axes(like), size, err));
    *(which ? &m->second_at[p] : &m->first_at[p]) = fth_scratch_source(*f);
    *(which ? &s->second_to[p] : &s->first_to[p]) = fth_scratch_sink(*f);
    return FTH_OK;
}

static bool moves(const sp_model *m, int p)
{
    return m->param[p] && sp_param_is_optimized(&m->set, (sp_param)p);
}

fth_status sp_moments_open(sp_moments *s, sp_model *m, const char *dir, bool planning, fth_err *err)
{
    *s = (sp_moments){.model = m, .open = true, .planning = planning};
    const int carries = fth_optim_carries((fth_optim_kind)m->set.optimizer);
    for (int i = 0; i < 2 * SP_PARAMS; i++)
        if (moves(m, i % SP_PARAMS) && (carries >> (i / SP_PARAMS) & 1))
            s->bytes += fth_tensor_bytes(m->param[i % SP_PARAMS]);
    fth_status st = check_room(s, dir, err);
    for (int i = 0; st == FTH_OK && i < 2 * SP_PARAMS; i++)
        if (moves(m, i % SP_PARAMS) && (carries >> (i / SP_PARAMS) & 1))
            st = add(s, i / SP_PARAMS, i % SP_PARAMS, dir, err);
    if (st != FTH_OK) sp_moments_close(s);
    return st;
}

fth_status sp_moments_load(sp_moments *s, const char *path, fth_err *err)
{
    fth_safetensors *f = NULL;
    FTH_TRY(fth_safetensors_open(&f, s->model->mem, path, err));
    fth_status st = FTH_OK;
    for (int i = 0; st == FTH_OK && i < 2 * SP_PARAMS; i++) {
        const int p = i % SP_PARAMS;
        const fth_sink *to = i / SP_PARAMS ? &s->second_to[p] : &s->first_to[p];
        if (!to->write) continue;
        char name[32];
        fth_source from = {0};
        snprintf(name, sizeof name, "adam_%c.%.16s", i / SP_PARAMS ? 'v' : 'm',
                 sp_param_name((sp_param)p));
        st = fth_safetensors_source(f, name, &from, err);
        bool same = st == FTH_OK && from.n_axes == to->n_axes && from.dtype == to->dtype;
        for (int a = 0; same && a < to->n_axes; a++) same = from.size[a] == to->size[a];
        if (st == FTH_OK && !same)
            st = FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: %s does not have the shape of %s", path, name,
                          sp_param_name((sp_param)p));
        if (st == FTH_OK) st = fth_source_copy(&from, to, s->model->mem, NULL, NULL, err);
        fth_source_close(&from);
    }
    fth_safetensors_close(f);
    return st;
}

void sp_moments_close(sp_moments *s)
{
    if (!s->open) return;
    for (int i = 0; i < 2 * SP_PARAMS; i++)
        fth_scratch_destroy(s->file[i / SP_PARAMS][i % SP_PARAMS]);
    for (int p = 0; p < SP_PARAMS; p++)
        s->model->first_at[p] = s->model->second_at[p] = (fth_source){0};
    *s = (sp_moments){0};
}
