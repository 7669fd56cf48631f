/* writer.c - see writer.h. */
#include "writer.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

enum { MOST_BUFFERS = 64 };

/* An image that is being assembled. */
typedef struct buffer {
    bool busy;
    fo_port port;
    int64_t stack, left; /* elements that are still missing */
    char *pixels;
    fth_mem *from; /* who gave them */
} buffer;

/* One sink. */
typedef struct outlet {
    fo_writer *writer;
    fo_port port;
    const int64_t *chosen;
} outlet;

struct fo_writer {
    fth_context *ctx;
    fth_mem *mem;     /* of the context: counts what is written */
    fth_mem *workers; /* pixels and encoders: their bytes are in the ledger as `reserved` */
    void *reserved;
    fo_writer_options opt;
    pthread_mutex_t lock;
    pthread_cond_t free_buffer;
    buffer buffer[MOST_BUFFERS];
    int n_buffers, encoding;
    int *files_left; /* [stack] */
    outlet outlet[FO_PORTS];
    double encode_s, write_s;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- what a kind is written as ---- */

static bool as_npy(const fo_writer_options *o, fo_kind kind)
{
    return kind == FO_OUT_IMAGE && strcmp(o->format.name, "npy") == 0;
}

static fth_dtype written_dtype(const fo_writer_options *o, fo_kind kind)
{
    if (kind == FO_OUT_IMAGE) return as_npy(o, kind) ? o->values : o->format.dtype;
    if (kind == FO_OUT_INDEX) return o->planes >= 256 ? FTH_U16 : FTH_U8;
    return FTH_F32;
}

static fth_dtype arriving_dtype(const fo_writer_options *o, fo_kind kind)
{
    if (kind == FO_OUT_IMAGE) return o->values;
    return kind == FO_OUT_INDEX ? FTH_U16 : FTH_F32;
}

static fth_picture_format picture_format(const fo_writer_options *o, fo_kind kind)
{
    fth_picture_format f = {.kind = FTH_PICTURE_TIF32};
    if (kind == FO_OUT_INDEX)
        f.kind = written_dtype(o, kind) == FTH_U8 ? FTH_PICTURE_TIF : FTH_PICTURE_TIF16;
    if (kind == FO_OUT_IMAGE && !as_npy(o, kind)) {
        (void)!fth_picture_format_parse(o->format.name, &f, NULL); /* names are one table's */
        f.quality = o->format.quality;
    }
    return f;
}

static fth_picture picture_of(const fo_writer_options *o, fo_kind kind, const void *pixels)
{
    return (fth_picture){.dtype = written_dtype(o, kind),
                         .height = o->rows,
                         .width = o->columns,
                         .channels = 1,
                         .pixels = pixels,
                         .um_per_px = o->um_per_px};
}

/* Of the largest picture that is put together. */
static uint64_t pixel_bytes(const fo_writer_options *o)
{
    int64_t most = 1;
    for (int kind = 0; kind < FO_OUT_KINDS; kind++) {
        const int64_t each = fth_dtype_size(written_dtype(o, (fo_kind)kind));
        if (o->wanted[kind] && each > most) most = each;
    }
    return (uint64_t)(o->rows * o->columns * most);
}

fo_amount fo_writer_amount(const fo_writer_options *o, fo_port port)
{
    const fo_kind kind = fo_port_kind(port);
    return fo_amount_of_picture(kind == FO_OUT_IMAGE ? o->format.name : "tif", o->format.quality,
                                written_dtype(o, kind), o->rows * o->columns);
}

/* ---- conversion of one row ---- */

static void convert_index(const fo_writer_options *o, const uint16_t *src, int64_t n, void *dst)
{
    const uint16_t more = (uint16_t)o->first_plane;
    if (written_dtype(o, FO_OUT_INDEX) == FTH_U8)
        for (int64_t i = 0; i < n; i++) ((uint8_t *)dst)[i] = (uint8_t)(src[i] + more);
    else
        for (int64_t i = 0; i < n; i++) ((uint16_t *)dst)[i] = (uint16_t)(src[i] + more);
}

static void convert_depth(const fo_writer_options *o, const float *src, int64_t n, float *dst)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = (float)(((double)src[i] + o->depth_offset) * o->depth_unit);
}

/* Only widening: u8 to u16, u8 and u16 to f32. */
static void widen(const void *src, fth_dtype from, int64_t n, void *dst, fth_dtype to)
{
    if (from == FTH_U8 && to == FTH_U16)
        for (int64_t i = 0; i < n; i++) ((uint16_t *)dst)[i] = ((const uint8_t *)src)[i];
    else if (from == FTH_U8)
        for (int64_t i = 0; i < n; i++) ((float *)dst)[i] = (float)((const uint8_t *)src)[i];
    else
        for (int64_t i = 0; i < n; i++) ((float *)dst)[i] = (float)((const uint16_t *)src)[i];
}

static void convert(const fo_writer_options *o, fo_kind kind, const void *src, int64_t n, void *dst)
{
    const fth_dtype from = arriving_dtype(o, kind), to = written_dtype(o, kind);
    if (kind == FO_OUT_INDEX)
        convert_index(o, src, n, dst);
    else if (kind == FO_OUT_DEPTH)
        convert_depth(o, src, n, dst);
    else if (from == to)
        memcpy(dst, src, (size_t)(n * fth_dtype_size(to)));
    else
        widen(src, from, n, dst, to);
}

/* ---- buffers ---- */

static fth_status take_buffer(fo_writer *w, fth_mem *from, fth_err *err)
{
    const uint64_t bytes = pixel_bytes(&w->opt);
    void *pixels = NULL;
    FTH_TRY(fth_mem_take(from, FTH_MEM_DIRECT, bytes, "picture", &pixels, err));
    memset(pixels, 0, bytes);
    w->buffer[w->n_buffers++] = (buffer){.pixels = pixels, .from = from};
    return FTH_OK;
}

/* The buffer of the image, or a free one, under the lock; NULL: all hold other images. */
static buffer *find_buffer(fo_writer *w, fo_port port, int64_t stack)
{
    buffer *empty = NULL;
    for (int i = 0; i < w->n_buffers; i++) {
        buffer *b = &w->buffer[i];
        if (b->busy && b->port == port && b->stack == stack) return b;
        if (!b->busy && !empty) empty = b;
    }
    return empty;
}

/* Waits while an image is being encoded, because its buffer becomes free. If all hold images that
 * wait for rows, as with plans that cut several stacks into strips, one more is allocated. */
static fth_status claim(fo_writer *w, fo_port port, int64_t stack, buffer **out, fth_err *err)
{
    fth_status s = FTH_OK;
    buffer *b;
    pthread_mutex_lock(&w->lock);
    while (!(b = find_buffer(w, port, stack)) && s == FTH_OK)
        if (w->encoding > 0)
            pthread_cond_wait(&w->free_buffer, &w->lock);
        else if (w->n_buffers < MOST_BUFFERS)
            s = take_buffer(w, w->mem, err);
        else
            s = FTH_FAIL(err, FTH_E_INTERNAL, "%d images are open and none is complete",
                         MOST_BUFFERS);
    if (s == FTH_OK && !b->busy) {
        b->busy = true;
        b->port = port;
        b->stack = stack;
        b->left = w->opt.rows * w->opt.columns;
    }
    pthread_mutex_unlock(&w->lock);
    *out = b;
    return s;
}

/* Whether these elements were the last of the picture; then it is being encoded. */
static bool complete(fo_writer *w, buffer *b, int64_t elements)
{
    pthread_mutex_lock(&w->lock);
    const bool last = (b->left -= elements) == 0;
    if (last) w->encoding++;
    pthread_mutex_unlock(&w->lock);
    return last;
}

static void give_back(fo_writer *w, buffer *b, bool written)
{
    pthread_mutex_lock(&w->lock);
    b->busy = false;
    w->encoding--;
    if (written && --w->files_left[b->stack] == 0 && w->opt.done)
        w->opt.done(w->opt.user, b->stack);
    pthread_cond_broadcast(&w->free_buffer);
    pthread_mutex_unlock(&w->lock);
}

/* ---- writing ---- */

static fth_status save_picture(fo_writer *w, const buffer *b, const char *path, fth_err *err)
{
    const fo_kind kind = fo_port_kind(b->port);
    const fth_picture picture = picture_of(&w->opt, kind, b->pixels);
    const fth_picture_format format = picture_format(&w->opt, kind);
    void *data = NULL;
    uint64_t bytes = 0;
    const fo_turn encoding = fo_watch_begin(w->opt.watch, FO_ENCODE, b->stack);
    const double start = now();
    const fth_status encoded =
        fth_picture_encode(w->workers, &picture, &format, &data, &bytes, err);
    const double middle = now();
    fo_watch_end(w->opt.watch, &encoding, bytes);
    if (encoded != FTH_OK) return fth_err_note(err, FTH_HERE, encoded, "encoding %s", path);
    const fo_turn writing = fo_watch_begin(w->opt.watch, FO_WRITE, b->stack);
    const fth_status s = fth_file_save(w->mem, path, data, bytes, err);
    const double end = now();
    fo_watch_end(w->opt.watch, &writing, bytes);
    fth_mem_release(w->workers, data, NULL);
    pthread_mutex_lock(&w->lock);
    w->encode_s += middle - start;
    w->write_s += end - middle;
    pthread_mutex_unlock(&w->lock);
    return s;
}

static fth_status save(fo_writer *w, const buffer *b, fth_err *err)
{
    char path[FTH_PATH];
    const fo_kind kind = fo_port_kind(b->port);
    FTH_TRY(w->opt.path(w->opt.user, b->stack, b->port, path, err));
    if (kind == FO_OUT_IMAGE)
        fo_scalebar_draw(&w->opt.scalebar, written_dtype(&w->opt, kind), w->opt.rows,
                         w->opt.columns, b->pixels);
    if (!as_npy(&w->opt, kind)) return save_picture(w, b, path, err);
    const int64_t size[] = {w->opt.rows, w->opt.columns};
    const fo_turn writing = fo_watch_begin(w->opt.watch, FO_WRITE, b->stack);
    const fth_status s = fth_npy_save(w->mem, path, w->opt.values, 2, size, b->pixels, err);
    fo_watch_end(w->opt.watch, &writing, pixel_bytes(&w->opt));
    return s;
}

/* One stack's part of a rectangle: rows and columns from lo[1], lo[2] on. */
static fth_status put(fo_writer *w, fo_port port, int64_t stack, const int64_t *lo,
                      const int64_t *n, const char *src, fth_err *err)
{
    const fo_kind kind = fo_port_kind(port);
    buffer *b = NULL;
    FTH_TRY(claim(w, port, stack, &b, err));
    const int64_t in = fth_dtype_size(arriving_dtype(&w->opt, kind)),
                  out = fth_dtype_size(written_dtype(&w->opt, kind));
    for (int64_t y = 0; y < n[1]; y++)
        convert(&w->opt, kind, src + y * n[2] * in, n[2],
                b->pixels + ((lo[1] + y) * w->opt.columns + lo[2]) * out);
    if (!complete(w, b, n[1] * n[2])) return FTH_OK;
    const fth_status s = save(w, b, err);
    give_back(w, b, s == FTH_OK);
    return s;
}

static fth_status write_rectangle(void *self, const int64_t *lo, const int64_t *n, const void *src,
                                  fth_err *err)
{
    const outlet *p = self;
    fo_writer *w = p->writer;
    const fth_dtype dtype = arriving_dtype(&w->opt, fo_port_kind(p->port));
    const int64_t bytes = n[1] * n[2] * fth_dtype_size(dtype);
    if (n[1] == 0 || n[2] == 0) return FTH_OK;
    for (int64_t i = 0; i < n[0]; i++) {
        const int64_t stack = p->chosen ? p->chosen[lo[0] + i] : lo[0] + i;
        FTH_TRY(put(w, p->port, stack, lo, n, (const char *)src + i * bytes, err));
    }
    return FTH_OK;
}

/* A run that ends early leaves incomplete images: they are dropped. */
static void forget(void *self)
{
    fo_writer *w = ((const outlet *)self)->writer;
    pthread_mutex_lock(&w->lock);
    for (int i = 0; i < w->n_buffers; i++) w->buffer[i].busy = false;
    pthread_cond_broadcast(&w->free_buffer);
    pthread_mutex_unlock(&w->lock);
}

/* Libraries that encode the kind, for the plan to count. */
static uint32_t libraries_of(const fo_writer_options *o, fo_kind kind)
{
    const bool jpeg = !as_npy(o, kind) && picture_format(o, kind).kind == FTH_PICTURE_JPG;
    return jpeg ? 1u << FTH_LIB_JPEG : 0;
}

fth_sink fo_writer_sink(fo_writer *w, fo_port port, const int64_t *chosen, int64_t n)
{
    w->outlet[port] = (outlet){w, port, chosen};
    return (fth_sink){.kind = "pictures",
                      .self = &w->outlet[port],
                      .dtype = arriving_dtype(&w->opt, fo_port_kind(port)),
                      .n_axes = 3,
                      .size = {n, w->opt.rows, w->opt.columns},
                      .write = write_rectangle,
                      .abandon = forget,
                      .libraries = libraries_of(&w->opt, fo_port_kind(port)),
                      .concurrent = true,
                      .part = {1, w->opt.rows, w->opt.columns}};
}

/* ---- making one ---- */

static int files_each(const fo_writer_options *o)
{
    int n = o->others;
    for (int kind = 0; kind < FO_OUT_KINDS; kind++) n += o->wanted[kind];
    return n;
}

/* What one encoder takes. */
static uint64_t encoder_bytes(const fo_writer_options *o)
{
    uint64_t most = 0;
    for (int kind = 0; kind < FO_OUT_KINDS; kind++) {
        if (!o->wanted[kind] || as_npy(o, (fo_kind)kind)) continue;
        const fth_picture p = picture_of(o, (fo_kind)kind, o); /* no pixel is read */
        const fth_picture_format f = picture_format(o, (fo_kind)kind);
        const uint64_t bytes = fth_picture_bound(&p, &f) + fth_picture_work_bytes(&p, &f);
        if (bytes > most) most = bytes;
    }
    const uint64_t page = 1 << 16; /* blocks are rounded up */
    return most + 3 * page;
}

/* Touches the pages of encoders now, so that they do not count as growth of the run. */
static fth_status warm_up(fo_writer *w, int n, uint64_t bytes, fth_err *err)
{
    void *block[MOST_BUFFERS] = {0};
    fth_status s = FTH_OK;
    for (int i = 0; s == FTH_OK && i < n; i++) {
        s = fth_mem_take(w->workers, FTH_MEM_ANY, bytes, "encoder", &block[i], err);
        if (s == FTH_OK) memset(block[i], 0, bytes);
    }
    for (int i = 0; i < n; i++) fth_mem_release(w->workers, block[i], NULL);
    return s;
}

static fth_status make_buffers(fo_writer *w, fth_err *err)
{
    fth_mem_stats stats;
    fth_mem_get_stats(w->mem, &stats);
    const uint64_t encoder = encoder_bytes(&w->opt), page = 1 << 16,
                   each = encoder + pixel_bytes(&w->opt) + page, share = stats.budget_bytes / 8;
    const int kinds = files_each(&w->opt);
    int n = fth_context_threads(w->ctx) + 1;
    if (n > MOST_BUFFERS / 2) n = MOST_BUFFERS / 2;
    while (n > 1 && (uint64_t)n * each > share) n--;
    if (n < kinds) n = kinds; /* images of one stack are assembled at the same time */
    if (n > w->opt.n_stacks * kinds) n = (int)w->opt.n_stacks * kinds;
    FTH_TRY(
        fth_mem_take(w->mem, FTH_MEM_DIRECT, (uint64_t)n * each, "pictures", &w->reserved, err));
    fth_mem_options opt;
    fth_mem_options_default(&opt);
    opt.budget_bytes = (uint64_t)n * each;
    FTH_TRY(fth_mem_create(&w->workers, &opt, err));
    while (w->n_buffers < n) FTH_TRY(take_buffer(w, w->workers, err));
    FTH_TRY(warm_up(w, n, encoder - 2 * page, err));
    return FTH_OK;
}

fth_status fo_writer_create(fo_writer **out, fth_context *ctx, const fo_writer_options *opt,
                            fth_err *err)
{
    fth_mem *mem = fth_context_mem(ctx);
    fo_writer *w = NULL;
    *out = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_POOL, sizeof *w, "writer", (void **)&w, err));
    *w = (fo_writer){.ctx = ctx, .mem = mem, .opt = *opt};
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->free_buffer, NULL);
    void *left = NULL;
    fth_status s =
        fth_mem_take(mem, FTH_MEM_POOL, (uint64_t)(opt->n_stacks + 1) * sizeof *w->files_left,
                     "files left", &left, err);
    w->files_left = left;
    for (int64_t i = 0; s == FTH_OK && i < opt->n_stacks; i++) w->files_left[i] = files_each(opt);
    if (s == FTH_OK) s = make_buffers(w, err);
    if (s == FTH_OK)
        *out = w;
    else
        fo_writer_destroy(w);
    return s;
}

void fo_writer_destroy(fo_writer *w)
{
    if (!w) return;
    fth_mem *mem = w->mem;
    for (int i = 0; i < w->n_buffers; i++)
        fth_mem_release(w->buffer[i].from, w->buffer[i].pixels, NULL);
    fth_mem_destroy(w->workers, NULL);
    fth_mem_release(mem, w->reserved, NULL);
    fth_mem_release(mem, w->files_left, NULL);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->free_buffer);
    fth_mem_release(mem, w, NULL);
}

void fo_writer_seconds(const fo_writer *w, double *encode, double *write)
{
    *encode = w->encode_s;
    *write = w->write_s;
}
