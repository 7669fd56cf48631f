/* record.c - batches, noise and starting values into an .npz file, for --replay.
 *
 * The number of iterations is known only at the end, so rows are spooled to unnamed files and
 * copied from there.
 */
#include "replay.h"

#include <string.h>

enum { IDX, IDY, EPS, SPOOLS };
static const char *const spool_name[SPOOLS] = {"idx", "idy", "eps"};

static fth_status copy_start(sp_record *r, const char *name, fth_tensor *t, fth_err *err)
{
    if (!t) return FTH_OK;
    int64_t size[FTH_MAX_AXES];
    for (int a = 0; a < fth_tensor_axes(t); a++) size[a] = fth_tensor_size(t, a);
    fth_tensor **to = &r->start[r->n_start];
    FTH_TRY(
        fth_tensor_create(to, r->mem, name, fth_tensor_dtype(t), fth_tensor_axes(t), size, err));
    memcpy(fth_tensor_data(*to), fth_tensor_data(t), (size_t)fth_tensor_bytes(t));
    r->name[r->n_start++] = name;
    return FTH_OK;
}

static fth_status open_all(sp_record *r, const sp_model *m, const char *dir, fth_err *err)
{
    FTH_TRY(copy_start(r, "W_init", m->param[SP_P_W], err));
    FTH_TRY(copy_start(r, "init_theta_raw", m->param[SP_P_THETA], err));
    FTH_TRY(copy_start(r, "init_log_ell", m->param[SP_P_ELL], err));
    FTH_TRY(copy_start(r, m->set.spatial ? "init_mean" : "init_mu", m->param[SP_P_MEAN], err));
    FTH_TRY(copy_start(r, "init_mu", m->param[SP_P_MU], err));
    FTH_TRY(copy_start(r, "init_sd_raw", m->param[SP_P_RAW], err));
    FTH_TRY(copy_start(r, "init_theta1", m->param[SP_P_NATURAL1], err));
    FTH_TRY(copy_start(r, "init_theta2", m->param[SP_P_NATURAL2], err));
    FTH_TRY(copy_start(r, "init_Lu_raw", m->param[SP_P_LU], err));
    FTH_TRY(copy_start(r, "init_Lu", m->param[SP_P_LAM], err));
    if (!m->set.local) {
        FTH_TRY(copy_start(r, "Z", m->Z, err));
        FTH_TRY(copy_start(r, "gZ", m->groupsZ, err));
    }
    FTH_TRY(copy_start(r, "nb_inference", m->nbr_inf, err));
    FTH_TRY(copy_start(r, "nb_for_kl", m->nbr_kl, err));
    for (int i = 0; i < SPOOLS; i++)
        FTH_TRY(fth_file_open_scratch(&r->spool[i], r->mem, dir, "record", err));
    const int64_t size[3] = {m->set.E, sp_factors(&m->set), r->cells};
    if (m->set.mode == SP_LOWER_BOUND) return FTH_OK;
    return fth_tensor_create(&r->eps, r->mem, "noise", FTH_F32, 3, size, err);
}

fth_status sp_record_open(sp_record *r, const sp_model *m, const char *path, const char *dir,
                          fth_err *err)
{
    *r = (sp_record){.mem = m->mem, .cells = m->set.batch_size, .genes = m->set.y_batch_size};
    snprintf(r->path, sizeof r->path, "%s", path);
    const fth_status s = open_all(r, m, dir, err);
    if (s != FTH_OK) sp_record_close(r);
    return s;
}

void sp_record_close(sp_record *r)
{
    for (int i = 0; i < SPOOLS; i++) fth_file_close(r->spool[i]);
    for (int i = 0; i < r->n_start; i++) fth_tensor_release(r->start[i]);
    fth_tensor_release(r->eps);
    *r = (sp_record){0};
}

static fth_status put(fth_file *file, const void *data, uint64_t bytes, fth_err *err)
{
    return fth_file_write(file, fth_file_bytes(file), bytes, data, "what is recorded", err);
}

static fth_status put_list(fth_file *file, const int64_t *list, int64_t n, fth_err *err)
{
    enum { PIECE = 2048 };
    int32_t piece[PIECE];
    for (int64_t i = 0; i < n;) {
        uint64_t k = 0;
        for (; k < PIECE && i < n; i++) piece[k++] = (int32_t)(list ? list[i] : i);
        FTH_TRY(put(file, piece, k * sizeof *piece, err));
    }
    return FTH_OK;
}

fth_status sp_record_add(sp_record *r, const int64_t *cell, const int64_t *gene, fth_err *err)
{
    if (!r->path[0]) return FTH_OK;
    FTH_TRY(put_list(r->spool[IDX], cell, r->cells, err));
    FTH_TRY(put_list(r->spool[IDY], gene, r->genes, err));
    if (r->eps) FTH_TRY(put(r->spool[EPS], fth_tensor_data(r->eps), fth_tensor_bytes(r->eps), err));
    r->n++;
    return FTH_OK;
}

static int list_items(const sp_record *r, fth_file_item item[SPOOLS + 10])
{
    int n = 0;
    item[n++] =
        (fth_file_item){.name = "idx", .dtype = FTH_I32, .n_axes = 2, .size = {r->n, r->cells}};
    item[n++] =
        (fth_file_item){.name = "idy", .dtype = FTH_I32, .n_axes = 2, .size = {r->n, r->genes}};
    if (r->eps)
        item[n++] = (fth_file_item){
            .name = "eps",
            .dtype = FTH_F32,
            .n_axes = 4,
            .size = {r->n, fth_tensor_size(r->eps, 0), fth_tensor_size(r->eps, 1), r->cells}};
    for (int i = 0; i < r->n_start; i++, n++) {
        item[n] = (fth_file_item){.name = r->name[i],
                                  .dtype = fth_tensor_dtype(r->start[i]),
                                  .n_axes = fth_tensor_axes(r->start[i])};
        for (int a = 0; a < item[n].n_axes; a++) item[n].size[a] = fth_tensor_size(r->start[i], a);
    }
    return n;
}

static fth_status copy_spool(const sp_record *r, int which, const fth_file_item *item,
                             const fth_sink *to, fth_err *err)
{
    uint64_t row = 4;
    for (int a = 1; a < item->n_axes; a++) row *= (uint64_t)item->size[a];
    void *room = NULL;
    FTH_TRY(fth_mem_take(r->mem, FTH_MEM_ANY, row, "record", &room, err));
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < r->n; i++) {
        const int64_t lo[4] = {i, 0, 0, 0}, n[4] = {1, item->size[1], item->size[2], item->size[3]};
        s = fth_file_read(r->spool[which], (uint64_t)i * row, row, room, "what was recorded", err);
        if (s == FTH_OK) s = to->write(to->self, lo, n, room, err);
    }
    (void)fth_mem_release(r->mem, room, NULL);
    return s == FTH_OK && to->commit ? to->commit(to->self, err) : s;
}

fth_status sp_record_save(sp_record *r, fth_err *err)
{
    if (!r->path[0]) return FTH_OK;
    fth_file_item item[SPOOLS + 10];
    const int n = list_items(r, item);
    fth_npz_writer *w = NULL;
    FTH_TRY(fth_npz_create(&w, r->mem, r->path, item, n, err));
    fth_status s = FTH_OK;
    for (int i = 0; s == FTH_OK && i < n; i++) {
        fth_sink sink;
        int which = 0;
        while (which < SPOOLS && strcmp(item[i].name, spool_name[which]) != 0) which++;
        s = fth_npz_sink(w, item[i].name, &sink, err);
        if (s != FTH_OK) break;
        s = which < SPOOLS ? copy_spool(r, which, &item[i], &sink, err)
                           : fth_sink_store(&sink, r->start[i - (n - r->n_start)], err);
    }
    if (s == FTH_OK) return fth_npz_commit(w, err);
    fth_npz_abandon(w);
    return s;
}
