/* mosaics.c - see mosaics.h. */
#include "mosaics.h"

#include <string.h>
#include <time.h>

enum {
    SAMPLES = 50, /* mosaics sampled for the median positions: enough for a stable median */
    CHUNK = 128   /* mosaics between two saves of stitch.csv */
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- existing files ---- */

static bool is_file(fth_status found, const char *path)
{
    fth_path_info info;
    return found == FTH_OK && fth_path_stat(path, &info, NULL) == FTH_OK && info.bytes > 0;
}

static bool is_done(const fo_mosaics *m, int64_t i)
{
    char path[FTH_PATH];
    if (!is_file(m->names.image(m->names.user, i, path, NULL), path)) return false;
    return !m->names.stack || is_file(m->names.stack(m->names.user, i, path, NULL), path);
}

static fth_status take(fo_mosaics *m, int64_t n, size_t each, const char *label, void *out,
                       fth_err *err)
{
    const uint64_t bytes = (uint64_t)(n > 0 ? n : 1) * each;
    void *block = NULL;
    FTH_TRY(fth_mem_take(m->mem, FTH_MEM_POOL, bytes, label, &block, err));
    memset(block, 0, bytes);
    memcpy(out, &block, sizeof block);
    return FTH_OK;
}

static fth_status set_up(fo_mosaics *m, fth_err *err)
{
    FTH_TRY(fth_texts_create(&m->failures, m->mem, err));
    FTH_TRY(take(m, m->n, sizeof *m->mosaic, "mosaics", &m->mosaic, err));
    m->how.most_tiles = 1;
    for (int64_t i = 0; i < m->n; i++) {
        const int tiles = m->names.tiles(m->names.user, i);
        m->mosaic[i] = (fo_mosaic){.tiles = tiles, .place = m->n_places, .failure = -1};
        m->n_places += tiles;
        if (tiles > m->how.most_tiles) m->how.most_tiles = tiles;
        if (m->none || (!m->again && is_done(m, i))) m->mosaic[i].state = FO_SKIPPED;
    }
    FTH_TRY(take(m, m->n_places, sizeof *m->place, "places", &m->place, err));
    FTH_TRY(take(m, m->how.most_tiles, sizeof *m->usual, "usual places", &m->usual, err));
    return fo_bench_bytes(&m->how, &m->bench_bytes, err);
}

fth_status fo_mosaics_open(fo_mosaics *m, fth_err *err)
{
    m->mem = fth_context_mem(m->ctx);
    const fth_status s = set_up(m, err);
    if (s != FTH_OK) fo_mosaics_close(m);
    return s;
}

void fo_mosaics_close(fo_mosaics *m)
{
    if (!m->mem) return;
    fth_texts_free(m->failures);
    fth_mem_release(m->mem, m->mosaic, NULL);
    fth_mem_release(m->mem, m->place, NULL);
    fth_mem_release(m->mem, m->usual, NULL);
    *m = (fo_mosaics){0};
}

int64_t fo_mosaics_count(const fo_mosaics *m, fo_state state)
{
    int64_t n = 0;
    for (int64_t i = 0; i < m->n; i++) n += m->mosaic[i].state == state;
    return n;
}

fth_status fo_mosaics_room(const fo_mosaics *m, fo_room *room, fth_err *err)
{
    const fo_format *f = &m->how.format;
    char path[FTH_PATH];
    for (int64_t i = 0; i < m->n; i++) {
        int64_t y, x;
        if (m->mosaic[i].state != FO_WAITING) continue;
        fo_mosaic_canvas(&m->how, m->mosaic[i].tiles, &y, &x);
        FTH_TRY(m->names.image(m->names.user, i, path, err));
        FTH_TRY(fo_room_add(room, path, fo_amount_of_picture(f->name, f->quality, f->dtype, y * x),
                            err));
        if (!m->names.stack) continue;
        FTH_TRY(m->names.stack(m->names.user, i, path, err));
        const int64_t voxels = m->names.planes * y * x;
        FTH_TRY(fo_room_add(room, path, fo_amount_of_picture("tif", 0, FTH_U8, voxels), err));
    }
    return FTH_OK;
}

/* ---- memory ---- */

fth_status fo_mosaics_plan(fo_mosaics *m, uint64_t *bytes, fth_err *err)
{
    fth_mem_stats s;
    char need[24], held[24], budget[24];
    fth_mem_get_stats(m->mem, &s);
    const uint64_t left = s.used_bytes < s.budget_bytes ? s.budget_bytes - s.used_bytes : 0;
    if (m->bench_bytes > left) {
        FTH_FAIL(err, FTH_E_NO_FIT,
                 "stitching %d tiles of y=%lld x=%lld needs %s in addition to %s in use, and "
                 "the budget is %s",
                 m->how.most_tiles, (long long)m->how.y, (long long)m->how.x,
                 fth_mem_format_size(m->bench_bytes, need, sizeof need),
                 fth_mem_format_size(s.used_bytes, held, sizeof held),
                 fth_mem_format_size(s.budget_bytes, budget, sizeof budget));
        fth_err_hint(err, "allow --memory %lluM",
                     (unsigned long long)((m->bench_bytes + s.used_bytes) >> 20) + 1);
        return FTH_E_NO_FIT;
    }
    m->benches = fth_context_threads(m->ctx);
    if (m->benches > m->n) m->benches = (int)m->n;
    while (m->benches > 1 && (uint64_t)m->benches * m->bench_bytes > left - left / 8) m->benches--;
    *bytes = s.used_bytes + (uint64_t)m->benches * m->bench_bytes;
    return FTH_OK;
}

/* ---- working ---- */

/* What workers share. */
typedef struct shop {
    fo_mosaics *m;
    const int64_t *chosen;
    fo_bench **bench;
    void *reserved; /* their bytes are in the ledger */
    int n_free;
    bool sampling; /* positions only, before the median ones are known */
    pthread_mutex_t lock;
    pthread_cond_t returned;
    fth_status status; /* of fatal errors: files that cannot be written */
    fth_err err;
} shop;

static fo_bench *borrow(shop *s)
{
    pthread_mutex_lock(&s->lock);
    while (s->n_free == 0) pthread_cond_wait(&s->returned, &s->lock);
    fo_bench *b = s->bench[--s->n_free];
    pthread_mutex_unlock(&s->lock);
    return b;
}

static void give_back(shop *s, fo_bench *b)
{
    pthread_mutex_lock(&s->lock);
    s->bench[s->n_free++] = b;
    pthread_cond_signal(&s->returned);
    pthread_mutex_unlock(&s->lock);
}

static fth_status load_tiles(const fo_mosaics *m, fo_bench *b, int64_t i, fth_err *err)
{
    char path[FTH_PATH];
    fo_bench_begin(b, m->mosaic[i].tiles);
    for (int k = 0; k < m->mosaic[i].tiles; k++) {
        FTH_TRY(m->names.tile(m->names.user, i, k, path, err));
        if (path[0]) FTH_TRY(fo_bench_load(b, k, path, err));
    }
    return FTH_OK;
}

/* Loads the tiles, and finds their positions. */
static fth_status lay_out(shop *s, fo_bench *b, int64_t i, fth_err *err)
{
    fo_mosaics *m = s->m;
    fo_mosaic *it = &m->mosaic[i];
    FTH_TRY(load_tiles(m, b, i, err));
    if (!it->known && (!it->sampled || s->sampling))
        FTH_TRY(fo_bench_align(b, m->place + it->place, err));
    if (s->sampling) {
        it->sampled = true;
        return FTH_OK;
    }
    if (!it->known) fo_mosaics_settle(m, i);
    it->known = true;
    return FTH_OK;
}

static fth_status draw(const fo_mosaics *m, fo_bench *b, int64_t i, fth_err *err)
{
    char path[FTH_PATH], folder[FTH_PATH];
    const fo_tile_place *place = m->place + m->mosaic[i].place;
    fo_bench_match(b, place);
    fo_bench_draw(b, place, 0);
    FTH_TRY(m->names.image(m->names.user, i, path, err));
    FTH_TRY(fth_path_parent(folder, path, err));
    FTH_TRY(fth_folder_make_all(m->mem, folder, err));
    return fo_bench_save(b, path, err);
}

/* The tiles of this one cannot be read: the others continue. */
static void set_apart(shop *s, int64_t i, const fth_err *found)
{
    fo_mosaics *m = s->m;
    char line[700], name[60];
    int64_t time;
    int well;
    m->names.label(m->names.user, i, &well, &time, name, sizeof name);
    snprintf(line, sizeof line, "%s: %.600s", name, found->text);
    pthread_mutex_lock(&s->lock);
    m->mosaic[i].state = FO_FAILED;
    if (fth_texts_add(m->failures, line, strlen(line), NULL) == FTH_OK)
        m->mosaic[i].failure = fth_texts_count(m->failures) - 1;
    pthread_mutex_unlock(&s->lock);
}

static void stop(shop *s, fth_status status, const fth_err *found)
{
    pthread_mutex_lock(&s->lock);
    if (s->status == FTH_OK) {
        s->status = status;
        s->err = *found;
    }
    pthread_mutex_unlock(&s->lock);
}

static bool is_stopped(shop *s)
{
    pthread_mutex_lock(&s->lock);
    const bool stopped = s->status != FTH_OK;
    pthread_mutex_unlock(&s->lock);
    return stopped;
}

static void make_one(void *arg, int64_t k, int worker)
{
    shop *s = arg;
    fo_mosaics *m = s->m;
    const int64_t i = s->chosen[k];
    fth_err err = {0};
    (void)worker;
    if (is_stopped(s)) return;
    fo_bench *b = borrow(s);
    fth_status status = lay_out(s, b, i, &err);
    if (status != FTH_OK && fth_status_get_info(status)->exit_code == 3) {
        set_apart(s, i, &err);
    } else {
        const bool wanted = status == FTH_OK && !s->sampling && m->mosaic[i].state == FO_WAITING;
        if (wanted) status = draw(m, b, i, &err);
        if (wanted && status == FTH_OK && m->names.stack)
            status = fo_mosaics_save_stack(m, b, i, &err);
        if (wanted && status == FTH_OK) m->mosaic[i].state = FO_DONE;
        if (status != FTH_OK) stop(s, status, &err);
    }
    give_back(s, b);
}

static fth_status work_on(shop *s, const int64_t *chosen, int64_t n, fth_err *err)
{
    s->chosen = chosen;
    FTH_TRY(fth_context_loop(s->m->ctx, "stitch", n, make_one, s, err));
    if (s->status != FTH_OK && err) *err = s->err;
    return s->status;
}

/* ---- the sample ---- */

static fth_status find_master(shop *s, int64_t *chosen, fth_err *err)
{
    fo_mosaics *m = s->m;
    if (m->how.most_tiles == 1) return FTH_OK;
    if (fo_mosaics_has_master(m)) return fo_mosaics_load_master(m, err);
    const int64_t step = (m->n + SAMPLES - 1) / SAMPLES;
    int64_t n = 0;
    for (int64_t i = 0; i < m->n; i += step) {
        chosen[n++] = i;
        m->mosaic[i].known = false;
    }
    s->sampling = true;
    FTH_TRY(work_on(s, chosen, n, err));
    s->sampling = false;
    return fo_mosaics_make_master(m, err);
}

/* ---- all of them ---- */

static fth_status make_all(shop *s, int64_t *chosen, fth_err *err)
{
    fo_mosaics *m = s->m;
    int64_t n = 0;
    FTH_TRY(find_master(s, chosen, err));
    for (int64_t i = 0; i < m->n; i++)
        if (m->mosaic[i].state == FO_WAITING ||
            (m->mosaic[i].state == FO_SKIPPED && !m->mosaic[i].known))
            chosen[n++] = i;
    for (int64_t at = 0; at < n; at += CHUNK) {
        const int64_t some = n - at < CHUNK ? n - at : CHUNK;
        if (m->stage && !fth_stage_report(m->stage, &(fth_stage_progress){
                                                        .done = at, .total = n, .what = "stitch"}))
            return FTH_FAIL(err, FTH_E_CANCELLED, "%lld of %lld mosaics are done", (long long)at,
                            (long long)n);
        FTH_TRY(work_on(s, chosen + at, some, err));
        FTH_TRY(fo_mosaics_save_places(m, err));
    }
    return FTH_OK;
}

static fth_status open_shop(shop *s, fth_err *err)
{
    fo_mosaics *m = s->m;
    uint64_t bytes = 0;
    FTH_TRY(fo_mosaics_plan(m, &bytes, err));
    FTH_TRY(take(m, m->benches, sizeof *s->bench, "workbenches", &s->bench, err));
    FTH_TRY(fth_mem_take(m->mem, FTH_MEM_DIRECT, (uint64_t)m->benches * m->bench_bytes, "mosaics",
                         &s->reserved, err));
    for (int i = 0; i < m->benches; i++) {
        FTH_TRY(fo_bench_create(&s->bench[i], &m->how, m->bench_bytes, m->mem, err));
        s->n_free++;
    }
    fth_mem_stats stats;
    fth_mem_mark(m->mem);
    fth_mem_get_stats(m->mem, &stats);
    m->planned_bytes = stats.used_bytes;
    return FTH_OK;
}

static void close_shop(shop *s)
{
    fo_mosaics *m = s->m;
    for (int i = 0; i < s->n_free; i++) fo_bench_destroy(s->bench[i]);
    if (s->reserved) fth_mem_release(m->mem, s->reserved, NULL);
    if (s->bench) fth_mem_release(m->mem, (void *)s->bench, NULL);
    pthread_cond_destroy(&s->returned);
    pthread_mutex_destroy(&s->lock);
}

/* Outputs that are replaced are removed first: a run that resumes must not take them for new. */
static fth_status clear_away(const fo_mosaics *m, fth_err *err)
{
    char path[FTH_PATH];
    if (!m->again) return FTH_OK;
    FTH_TRY(fth_path_remove(m->mem, m->table, err));
    FTH_TRY(fth_path_remove(m->mem, m->master, err));
    for (int64_t i = 0; i < m->n; i++) {
        if (m->mosaic[i].state != FO_WAITING) continue;
        FTH_TRY(m->names.image(m->names.user, i, path, err));
        FTH_TRY(fth_path_remove(m->mem, path, err));
        if (!m->names.stack) continue;
        FTH_TRY(m->names.stack(m->names.user, i, path, err));
        FTH_TRY(fth_path_remove(m->mem, path, err));
    }
    return FTH_OK;
}

static bool is_all_there(const fo_mosaics *m)
{
    for (int64_t i = 0; i < m->n; i++)
        if (m->mosaic[i].state == FO_WAITING || !m->mosaic[i].known) return false;
    return true;
}

static fth_status run_all(fo_mosaics *m, fth_err *err)
{
    shop s = {.m = m, .lock = PTHREAD_MUTEX_INITIALIZER, .returned = PTHREAD_COND_INITIALIZER};
    const double start = now();
    void *chosen = NULL;
    fth_mem_stats stats;
    fth_status status = open_shop(&s, err);
    if (status == FTH_OK)
        status = fth_mem_take(m->mem, FTH_MEM_META, (uint64_t)m->n * sizeof(int64_t) + 1, "chosen",
                              &chosen, err);
    if (status == FTH_OK) status = make_all(&s, chosen, err);
    if (chosen) fth_mem_release(m->mem, chosen, NULL);
    fth_mem_get_stats(m->mem, &stats);
    m->peak_bytes = stats.peak_bytes;
    close_shop(&s);
    m->seconds = now() - start;
    return status;
}

fth_status fo_mosaics_run(fo_mosaics *m, fth_err *err)
{
    if (m->none) return FTH_OK;
    FTH_TRY(clear_away(m, err));
    FTH_TRY(fo_mosaics_load_places(m, err));
    fth_status s = is_all_there(m) ? FTH_OK : run_all(m, err);
    const int64_t failed = fo_mosaics_count(m, FO_FAILED);
    if (s == FTH_OK && failed > 0)
        s = FTH_FAIL(err, FTH_E_JOB_FAILED, "%lld of %lld mosaics failed:\n  %s", (long long)failed,
                     (long long)m->n, fth_texts_get(m->failures, 0));
    return s;
}
