/* checkpoint.c - see checkpoint.h.
 *
 * The file: two heads, then solid angles f64 [slow], samples out of range i64 [slow], the image f32
 * [slow fast]. Rows are written first and synced, then a head that counts them; the heads alternate
 * and carry a hash, so one of them is valid whenever the machine stops.
 */
#include "checkpoint.h"

#include <string.h>

enum { HEAD_BYTES = 512, HEADS = 2 };
static const char magic[8] = "FTHBRCP1";

typedef struct head {
    char magic[8];
    uint64_t experiment; /* hash */
    int64_t slow, fast, rows, latch, serial;
    uint64_t latch_known;
    uint64_t hash; /* of all before it */
} head;

struct br_checkpoint {
    fth_mem *mem;
    const br_experiment *e;
    char path[FTH_PATH + 32];
    fth_file *file;
    head head;
    int64_t every;
    int64_t got[3]; /* rows received: image, omega, outside */
    double *omega;  /* [slow], then outside */
    int64_t *outside;
    fth_tensor *omega_rows, *outside_rows;
};

/* ---- which experiment ---- */

static uint64_t hash_tensor(fth_tensor *t, uint64_t seed)
{
    return t ? fth_hash_bytes(fth_tensor_data(t), fth_tensor_bytes(t), seed) : seed;
}

static fth_status hash_experiment(const br_experiment *e, uint64_t *out, fth_err *err)
{
    const br_scene *s = &e->scene;
    uint64_t h = fth_hash_bytes(fth_version(), strlen(fth_version()), 1);
    h = fth_hash_bytes(s, sizeof *s, h);
    h = fth_hash_bytes(e->param, sizeof e->param, h);
    h = hash_tensor(e->mosaic_rotation, hash_tensor(e->source, hash_tensor(e->table, h)));
    void *row = NULL;
    if (s->masked)
        FTH_TRY(fth_mem_take(e->mem, FTH_MEM_ANY, (uint64_t)s->fast * sizeof(uint16_t), "mask row",
                             &row, err));
    fth_status st = FTH_OK;
    for (int64_t i = 0; row && st == FTH_OK && i < s->slow; i++) {
        st = e->mask.read(e->mask.self, ((int64_t[]){i, 0}), ((int64_t[]){1, s->fast}), row, err);
        if (st == FTH_OK) h = fth_hash_bytes(row, (size_t)s->fast * sizeof(uint16_t), h);
    }
    if (row) (void)fth_mem_release(e->mem, row, NULL);
    *out = h;
    return st;
}

/* ---- the file ---- */

static int64_t omega_at(const br_checkpoint *c, int64_t row)
{
    (void)c;
    return HEADS * HEAD_BYTES + row * (int64_t)sizeof(double);
}
static int64_t outside_at(const br_checkpoint *c, int64_t row)
{
    return omega_at(c, c->head.slow) + row * (int64_t)sizeof(int64_t);
}
static int64_t pixel_at(const br_checkpoint *c, int64_t row, int64_t fast)
{
    return outside_at(c, c->head.slow) + (row * c->head.fast + fast) * (int64_t)sizeof(float);
}

static fth_status put(const br_checkpoint *c, int64_t at, const void *from, int64_t bytes,
                      fth_err *err)
{
    return fth_file_write(c->file, (uint64_t)at, (uint64_t)bytes, from, "rows", err);
}

static bool get(const br_checkpoint *c, int64_t at, void *to, int64_t bytes)
{
    return fth_file_read(c->file, (uint64_t)at, (uint64_t)bytes, to, "rows", NULL) == FTH_OK;
}

static fth_status write_head(br_checkpoint *c, fth_err *err)
{
    c->head.serial++;
    c->head.hash = fth_hash_bytes(&c->head, offsetof(head, hash), 0);
    FTH_TRY(fth_file_sync(c->file, err));
    FTH_TRY(put(c, c->head.serial % HEADS * HEAD_BYTES, &c->head, sizeof c->head, err));
    return fth_file_sync(c->file, err);
}

static fth_status save(br_checkpoint *c, fth_err *err)
{
    int64_t rows = c->got[0];
    for (int i = 1; i < 3; i++)
        if (c->got[i] < rows) rows = c->got[i];
    const int64_t from = c->head.rows, n = rows - from;
    if (n <= 0) return FTH_OK;
    FTH_TRY(put(c, omega_at(c, from), c->omega + from, n * (int64_t)sizeof(double), err));
    FTH_TRY(put(c, outside_at(c, from), c->outside + from, n * (int64_t)sizeof(int64_t), err));
    c->head.rows = rows;
    return write_head(c, err);
}

/* ---- sinks ---- */

static fth_status came(br_checkpoint *c, int which, const int64_t *lo, const int64_t *n,
                       fth_err *err)
{
    if (lo[0] <= c->got[which] && lo[0] + n[0] > c->got[which]) c->got[which] = lo[0] + n[0];
    int64_t rows = c->got[0];
    for (int i = 1; i < 3; i++)
        if (c->got[i] < rows) rows = c->got[i];
    return rows - c->head.rows >= c->every || rows == c->head.slow ? save(c, err) : FTH_OK;
}

/* Rows that are saved already arrive again as zeros and are skipped. */
static fth_status take_image(void *self, const int64_t *lo, const int64_t *n, const void *src,
                             fth_err *err)
{
    br_checkpoint *c = self;
    const float *row = src;
    for (int64_t i = 0; i < n[0]; i++, row += n[1])
        if (lo[0] + i >= c->head.rows)
            FTH_TRY(put(c, pixel_at(c, lo[0] + i, lo[1]), row, n[1] * (int64_t)sizeof(float), err));
    return lo[1] + n[1] == c->head.fast ? came(c, 0, lo, n, err) : FTH_OK;
}

static fth_status take_omega(void *self, const int64_t *lo, const int64_t *n, const void *src,
                             fth_err *err)
{
    br_checkpoint *c = self;
    for (int64_t i = 0; i < n[0]; i++)
        if (lo[0] + i >= c->head.rows) c->omega[lo[0] + i] = ((const double *)src)[i];
    return came(c, 1, lo, n, err);
}

static fth_status take_outside(void *self, const int64_t *lo, const int64_t *n, const void *src,
                               fth_err *err)
{
    br_checkpoint *c = self;
    for (int64_t i = 0; i < n[0]; i++)
        if (lo[0] + i >= c->head.rows) c->outside[lo[0] + i] = ((const int64_t *)src)[i];
    return came(c, 2, lo, n, err);
}

/* The run was stopped: save the complete rows, best effort. */
static void keep(void *self)
{
    (void)save(self, NULL);
}

br_row_sinks br_checkpoint_sinks(br_checkpoint *c)
{
    const fth_sink rows = {.kind = "checkpoint", .self = c, .n_axes = 1, .size = {c->head.slow}};
    br_row_sinks s = {.image = rows, .omega = rows, .outside = rows};
    s.image.n_axes = 2;
    s.image.size[1] = c->head.fast;
    s.image.dtype = FTH_F32;
    s.image.write = take_image;
    s.image.abandon = keep;
    s.omega.dtype = FTH_F64;
    s.omega.write = take_omega;
    s.outside.dtype = FTH_I64;
    s.outside.write = take_outside;
    return s;
}

/* ---- open and close ---- */

/* The newer of the valid heads. */
static bool read_head(br_checkpoint *c, head *out)
{
    bool found = false;
    for (int i = 0; i < HEADS; i++) {
        head h;
        if (!get(c, i * HEAD_BYTES, &h, sizeof h)) continue;
        if (memcmp(h.magic, magic, sizeof magic) != 0 ||
            h.hash != fth_hash_bytes(&h, offsetof(head, hash), 0))
            continue;
        if (found && h.serial < out->serial) continue;
        *out = h;
        found = true;
    }
    return found;
}

static bool resume(br_checkpoint *c)
{
    head h;
    const head *want = &c->head;
    if (!read_head(c, &h) || h.experiment != want->experiment || h.slow != want->slow ||
        h.fast != want->fast || h.rows < 0 || h.rows > h.slow)
        return false;
    if (fth_file_bytes(c->file) < (uint64_t)pixel_at(c, h.slow, 0)) return false;
    if (!get(c, omega_at(c, 0), c->omega, h.rows * (int64_t)sizeof(double)) ||
        !get(c, outside_at(c, 0), c->outside, h.rows * (int64_t)sizeof(int64_t)))
        return false;
    c->head = h;
    return true;
}

static fth_status begin(br_checkpoint *c, fth_err *err)
{
    FTH_TRY(fth_file_resize(c->file, 0, err));
    FTH_TRY(fth_file_resize(c->file, (uint64_t)pixel_at(c, c->head.slow, 0), err));
    return write_head(c, err);
}

static fth_status open_file(br_checkpoint *c, fth_err *err)
{
    const br_scene *s = &c->e->scene;
    const int64_t rows[1] = {s->slow};
    FTH_TRY(fth_tensor_create(&c->omega_rows, c->mem, "solid angles", FTH_F64, 1, rows, err));
    FTH_TRY(fth_tensor_create(&c->outside_rows, c->mem, "out of range", FTH_I64, 1, rows, err));
    c->omega = fth_tensor_data(c->omega_rows);
    c->outside = fth_tensor_data(c->outside_rows);
    memcpy(c->head.magic, magic, sizeof magic);
    c->head.slow = s->slow;
    c->head.fast = s->fast;
    FTH_TRY(hash_experiment(c->e, &c->head.experiment, err));
    FTH_TRY(fth_file_open_update(&c->file, c->mem, c->path, err));
    if (!resume(c)) FTH_TRY(begin(c, err));
    for (int i = 0; i < 3; i++) c->got[i] = c->head.rows;
    return FTH_OK;
}

fth_status br_checkpoint_open(br_checkpoint **out, const br_experiment *e, const char *path,
                              int64_t every, fth_err *err)
{
    *out = NULL;
    void *block = NULL;
    FTH_TRY(fth_mem_take(e->mem, FTH_MEM_META, sizeof(br_checkpoint), "checkpoint", &block, err));
    br_checkpoint *c = memset(block, 0, sizeof *c);
    c->mem = e->mem;
    c->e = e;
    c->every = every > 0 ? every : 1;
    fth_status s = FTH_OK;
    if (snprintf(c->path, sizeof c->path, "%s", path) >= (int)sizeof c->path)
        s = FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: the path is too long", path);
    if (s == FTH_OK) s = open_file(c, err);
    if (s != FTH_OK) {
        br_checkpoint_close(c);
        return s;
    }
    *out = c;
    return FTH_OK;
}

void br_checkpoint_close(br_checkpoint *c)
{
    if (!c) return;
    fth_file_close(c->file);
    fth_tensor_release(c->omega_rows);
    fth_tensor_release(c->outside_rows);
    (void)fth_mem_release(c->mem, c, NULL);
}

void br_checkpoint_remove(br_checkpoint *c)
{
    fth_path_discard(c->mem, c->path);
}

int64_t br_checkpoint_rows(const br_checkpoint *c)
{
    return c->head.rows;
}

bool br_checkpoint_latch(const br_checkpoint *c, int64_t *latch)
{
    if (c->head.latch_known) *latch = c->head.latch;
    return c->head.latch_known != 0;
}

fth_status br_checkpoint_set_latch(br_checkpoint *c, int64_t latch, fth_err *err)
{
    c->head.latch = latch;
    c->head.latch_known = 1;
    return write_head(c, err);
}

fth_status br_checkpoint_image(br_checkpoint *c, fth_source *out, fth_err *err)
{
    const fth_raw_layout layout = {.dtype = FTH_F32,
                                   .n_axes = 2,
                                   .size = {c->head.slow, c->head.fast},
                                   .offset = (uint64_t)pixel_at(c, 0, 0)};
    return fth_raw_open(out, c->mem, c->path, &layout, err);
}

fth_source br_checkpoint_omega(br_checkpoint *c)
{
    return fth_tensor_source(c->omega_rows);
}

fth_source br_checkpoint_outside(br_checkpoint *c)
{
    return fth_tensor_source(c->outside_rows);
}
