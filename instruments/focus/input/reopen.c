/* reopen.c - see reopen.h. */
#include "reopen.h"

#include <pthread.h>

/* A reader that unpacks takes rooms for a sixteenth of its budget, at least one: with a budget of
 * 31 planes that is one room of a plane, or several of a strip. */
enum { PERMITS = 8, PLANES = 31, LEAST = 1 << 20 };

struct fo_reopener {
    fth_mem *mem, *readers;
    uint64_t each; /* bytes of one open file */
    int left;
    pthread_mutex_t lock;
    pthread_cond_t closed;
};

/* What the first file takes while it is open; they are all alike. */
static fth_status measure(fo_reopener *r, const fo_input *in, fth_err *err)
{
    fth_source source;
    FTH_TRY(fo_file_reopen(&in->file[0], r->readers, in->selection, &source, err));
    fth_mem_stats stats;
    fth_mem_get_stats(r->readers, &stats);
    r->each = stats.used_bytes + stats.meta_bytes;
    fth_source_close(&source);
    return FTH_OK;
}

fth_status fo_reopener_create(fo_reopener **out, fo_input *in, fth_err *err)
{
    fo_reopener *r = NULL;
    fth_mem_options opt;
    *out = NULL;
    FTH_TRY(fth_mem_take(in->mem, FTH_MEM_POOL, sizeof *r, "reopened files", (void **)&r, err));
    *r = (fo_reopener){.mem = in->mem, .left = PERMITS};
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->closed, NULL);
    const fo_file *f = &in->file[0];
    const int64_t plane = (f->rgb ? 3 : 1) * f->size[FO_Y] * f->size[FO_X];
    fth_mem_options_default(&opt);
    opt.budget_bytes = LEAST + PLANES * (uint64_t)(plane * fth_dtype_size(f->dtype));
    fth_status s = fth_mem_create(&r->readers, &opt, err);
    if (s == FTH_OK) s = measure(r, in, err);
    if (s == FTH_OK)
        *out = r;
    else
        fo_reopener_destroy(r);
    return s;
}

void fo_reopener_destroy(fo_reopener *r)
{
    if (!r) return;
    fth_mem_destroy(r->readers, NULL);
    pthread_cond_destroy(&r->closed);
    pthread_mutex_destroy(&r->lock);
    fth_mem_release(r->mem, r, NULL);
}

static void give_permit(fo_reopener *r)
{
    pthread_mutex_lock(&r->lock);
    r->left++;
    pthread_cond_signal(&r->closed);
    pthread_mutex_unlock(&r->lock);
}

fth_status fo_reopener_open(fo_reopener *r, const fo_file *f, const fo_selection *selection,
                            fth_source *out, fth_err *err)
{
    pthread_mutex_lock(&r->lock);
    while (r->left == 0) pthread_cond_wait(&r->closed, &r->lock);
    r->left--;
    pthread_mutex_unlock(&r->lock);
    const fth_status s = fo_file_reopen(f, r->readers, selection, out, err);
    if (s != FTH_OK) give_permit(r);
    return s;
}

void fo_reopener_close(fo_reopener *r, fth_source *source)
{
    fth_source_close(source);
    give_permit(r);
}

uint64_t fo_reopener_bytes(const fo_reopener *r)
{
    return r->each;
}
