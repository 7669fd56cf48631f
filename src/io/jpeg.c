/* jpeg.c - JPEG files, written and read: the one file that knows libjpeg.
 *
 * Written: baseline, the slow and exact integer transform, the standard tables of Huffman codes; so
 * tables and coded data are those of every program on libjpeg. libjpeg takes its memory from
 * malloc: a few rows, and for reading progressive files all coefficients, which are limited. Its
 * errors jump out of it, so what it needs lives in an object that outlives the jump.
 */
#include "base/assert.h"
#include "io/picture.h"
#include "mem/heap.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

enum {
    BUFFER = 64 << 10,       /* bytes read at a time; decoding them takes far longer */
    MOST_SIDE = 65500,       /* libjpeg's own limit */
    MOST_MEMORY = 256 << 20, /* coefficients of 44 megapixels, progressive and not subsampled */
    MOST_SCANS = 100         /* encoders write about ten */
};

/* The error handler of libjpeg: its message, and where to jump to. */
typedef struct trouble {
    struct jpeg_error_mgr mgr; /* first: libjpeg hands back its address */
    jmp_buf out;
    fth_status status; /* of an error that was not libjpeg's own */
    char text[JMSG_LENGTH_MAX];
} trouble;

static void fail_out(j_common_ptr c)
{
    trouble *t = (trouble *)(void *)c->err;
    if (t->status == FTH_OK) t->mgr.format_message(c, t->text);
    longjmp(t->out, 1);
}

/* Warnings that pixels were guessed are failures; others are ignored. */
static void on_message(j_common_ptr c, int level)
{
    static const int bad[] = {JWRN_HIT_MARKER, JWRN_HUFF_BAD_CODE, JWRN_JPEG_EOF, JWRN_MUST_RESYNC,
                              JWRN_ARITH_BAD_CODE};
    for (size_t i = 0; level < 0 && i < sizeof bad / sizeof bad[0]; i++)
        if (c->err->msg_code == bad[i]) fail_out(c);
}

static void say_nothing(j_common_ptr c)
{
    (void)c;
}

static struct jpeg_error_mgr *arm(trouble *t)
{
    jpeg_std_error(&t->mgr);
    t->mgr.error_exit = fail_out;
    t->mgr.emit_message = on_message;
    t->mgr.output_message = say_nothing;
    return &t->mgr;
}

/* ---- writing ---- */

/* Two bytes for each pixel and channel of whole blocks, and the tables: what TurboJPEG allows. */
static uint64_t bound(const fth_picture *p, const fth_picture_format *f)
{
    (void)f;
    const uint64_t h = (uint64_t)(p->height + 15) / 16 * 16,
                   w = (uint64_t)(p->width + 15) / 16 * 16;
    return h * w * (p->channels == 1 ? 2 : 6) + 2048;
}

typedef struct writer {
    struct jpeg_compress_struct c;
    trouble trouble;
    struct jpeg_destination_mgr to;
    fth__picture_out *out;
} writer;

static void begin_output(j_compress_ptr c)
{
    const writer *w = (const writer *)(const void *)c;
    c->dest->next_output_byte = w->out->data;
    c->dest->free_in_buffer = w->out->room;
}

static boolean refuse_more(j_compress_ptr c)
{
    ERREXIT(c, JERR_BUFFER_SIZE);
    return FALSE;
}

static void end_output(j_compress_ptr c)
{
    const writer *w = (const writer *)(const void *)c;
    FTH_ASSERT(c->dest->free_in_buffer <= w->out->room);
    w->out->n = w->out->room - c->dest->free_in_buffer;
}

/* Pixels of a centimetre, where that fits into 16 bits. */
static void set_density(j_compress_ptr c, double um_per_px)
{
    const double per_cm = um_per_px > 0 ? round(1e4 / um_per_px) : 0;
    if (per_cm < 1 || per_cm > UINT16_MAX) return;
    c->density_unit = 2;
    c->X_density = c->Y_density = (UINT16)per_cm;
}

static void compress(writer *w, const fth_picture *p, int quality)
{
    j_compress_ptr c = &w->c;
    jpeg_create_compress(c);
    w->to.init_destination = begin_output;
    w->to.empty_output_buffer = refuse_more;
    w->to.term_destination = end_output;
    c->dest = &w->to;
    c->image_width = (JDIMENSION)p->width;
    c->image_height = (JDIMENSION)p->height;
    c->input_components = p->channels;
    c->in_color_space = p->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(c);
    jpeg_set_quality(c, quality, TRUE);
    c->dct_method = JDCT_ISLOW;
    set_density(c, p->um_per_px);
    jpeg_start_compress(c, TRUE);
    const uint64_t row = (uint64_t)p->width * (uint64_t)p->channels;
    for (uint64_t y = 0; y < (uint64_t)p->height; y++) {
        union {
            const uint8_t *in;
            uint8_t *row; /* libjpeg only reads it */
        } at = {(const uint8_t *)p->pixels + y * row};
        (void)jpeg_write_scanlines(c, &at.row, 1);
    }
    jpeg_finish_compress(c);
}

static fth_status encode(fth_mem *mem, const fth_picture *p, const fth_picture_format *f,
                         fth__picture_out *out, fth_err *err)
{
    writer *w = fth__heap_alloc(mem, sizeof *w);
    if (!w) return FTH_FAIL(err, FTH_E_NOMEM, "no memory to write a JPEG");
    fth_status s = FTH_OK;
    w->c.err = arm(&w->trouble);
    w->out = out;
    if (setjmp(w->trouble.out) == 0)
        compress(w, p, f->quality > 0 ? f->quality : 75);
    else if (w->c.err->msg_code == JERR_OUT_OF_MEMORY)
        s = FTH_FAIL(err, FTH_E_NOMEM, "no memory for libjpeg");
    else
        s = FTH_FAIL(err, FTH_E_LIBRARY, "libjpeg cannot write a picture: %s", w->trouble.text);
    jpeg_destroy_compress(&w->c);
    fth__heap_free(mem, w);
    return s;
}

static uint64_t work(const fth_picture *p, const fth_picture_format *f)
{
    (void)p, (void)f;
    return sizeof(writer);
}

const fth__picture_writer fth__jpeg_writer = {
    .bound = bound, .work = work, .encode = encode, .most_side = MOST_SIDE};

/* ---- reading ---- */

typedef struct reader {
    struct jpeg_decompress_struct c;
    trouble trouble;
    struct jpeg_source_mgr from;
    fth_mem *mem;
    fth_file *file;
    uint64_t at;
    bool started;
    struct jpeg_progress_mgr progress;
    fth_err why; /* of a read that failed inside libjpeg */
    JOCTET buffer[BUFFER];
} reader;

static void begin_input(j_decompress_ptr c)
{
    (void)c;
}

static boolean fill(j_decompress_ptr c)
{
    reader *r = (reader *)(void *)c;
    FTH_ASSERT(r->at <= fth_file_bytes(r->file));
    const uint64_t left = fth_file_bytes(r->file) - r->at, n = left < BUFFER ? left : BUFFER;
    r->trouble.status = n > 0 ? fth_file_read(r->file, r->at, n, r->buffer, "a JPEG", &r->why)
                              : FTH__FILE_FAIL(&r->why, FTH_E_FILE_SHORT, r->file->path, r->at,
                                               "the JPEG ends here, before its last pixel");
    if (r->trouble.status != FTH_OK) fail_out((j_common_ptr)c);
    r->at += n;
    r->from.next_input_byte = r->buffer;
    r->from.bytes_in_buffer = n;
    return TRUE;
}

static void skip(j_decompress_ptr c, long n)
{
    reader *r = (reader *)(void *)c;
    const uint64_t have = r->from.bytes_in_buffer;
    if (n <= 0) return;
    if ((uint64_t)n <= have) {
        r->from.next_input_byte += n;
        r->from.bytes_in_buffer -= (size_t)n;
        return;
    }
    const uint64_t end = fth_file_bytes(r->file), over = (uint64_t)n - have;
    r->at = over < end - r->at ? r->at + over : end;
    r->from.bytes_in_buffer = 0;
}

static void end_input(j_decompress_ptr c)
{
    (void)c;
}

static fth_status failed(reader *r, fth_err *err)
{
    if (r->trouble.status != FTH_OK) {
        if (err) *err = r->why;
        return r->trouble.status;
    }
    if (r->c.err->msg_code == JERR_OUT_OF_MEMORY)
        return FTH_FAIL(err, FTH_E_NOMEM, "%s: no memory for libjpeg", r->file->path);
    return FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, r->file->path, r->at - r->from.bytes_in_buffer,
                          "the JPEG is damaged: %s", r->trouble.text);
}

static double um_of(const struct jpeg_decompress_struct *c)
{
    const double per_metre[3] = {0, c->X_density / 0.0254, c->X_density * 100.0};
    return c->saw_JFIF_marker && c->density_unit < 3
               ? fth__um_of_density(per_metre[c->density_unit])
               : 0;
}

/* A progressive file is read whole before its first row; one of endless scans would never end. */
static void watch(j_common_ptr c)
{
    const reader *r = (const reader *)(const void *)c;
    if (r->c.input_scan_number > MOST_SCANS) ERREXIT(c, JERR_BAD_PROGRESSION);
}

static void start(reader *r)
{
    jpeg_create_decompress(&r->c);
    r->progress.progress_monitor = watch;
    r->c.progress = &r->progress;
    r->c.mem->max_memory_to_use = MOST_MEMORY;
    r->from.init_source = begin_input;
    r->from.fill_input_buffer = fill;
    r->from.skip_input_data = skip;
    r->from.resync_to_restart = jpeg_resync_to_restart;
    r->from.term_source = end_input;
    r->c.src = &r->from;
    (void)jpeg_read_header(&r->c, TRUE);
    if (r->c.num_components == 3) r->c.out_color_space = JCS_RGB;
    r->c.dct_method = JDCT_ISLOW;
}

static fth_status check(const reader *r, fth_err *err)
{
    const struct jpeg_decompress_struct *c = &r->c;
    if (c->num_components != 1 && c->num_components != 3)
        return FTH__FILE_FAIL(err, FTH_E_FILE_FEATURE, r->file->path, 0,
                              "a JPEG of %d channels (CMYK?); grey and red, green, blue are read",
                              c->num_components);
    if (c->data_precision != 8)
        return FTH__FILE_FAIL(err, FTH_E_FILE_FEATURE, r->file->path, 0,
                              "a JPEG of %d bits; those of 8 are read", c->data_precision);
    return FTH_OK;
}

static void end(void *state)
{
    reader *r = state;
    jpeg_destroy_decompress(&r->c);
    fth_file_close(r->file);
    fth__heap_free(r->mem, r);
}

static fth_status begin(void **state, fth_mem *mem, fth_file *file, bool alpha,
                        fth__picture_head *head, fth_err *err)
{
    (void)alpha; /* it has none */
    *state = NULL;
    reader *r = fth__heap_alloc(mem, sizeof *r);
    if (!r) return FTH_FAIL(err, FTH_E_NOMEM, "%s: no memory to read it", file->path);
    r->mem = mem;
    r->file = fth__file_retain(file);
    r->c.err = arm(&r->trouble);
    fth_status s = FTH_OK;
    if (setjmp(r->trouble.out) == 0)
        start(r);
    else
        s = failed(r, err);
    if (s == FTH_OK) s = check(r, err);
    if (s != FTH_OK) {
        end(r);
        return s;
    }
    *head = (fth__picture_head){.width = r->c.image_width,
                                .height = r->c.image_height,
                                .channels = r->c.num_components,
                                .dtype = FTH_U8,
                                .um_per_px = um_of(&r->c)};
    *state = r;
    return FTH_OK;
}

static void take_row(reader *r, JSAMPROW row)
{
    if (!r->started) (void)jpeg_start_decompress(&r->c);
    r->started = true;
    /* the caller's row has this many samples, for this many rows */
    FTH_ASSERT(r->c.output_width == r->c.image_width &&
               r->c.output_components == r->c.num_components &&
               r->c.output_scanline < r->c.output_height);
    (void)jpeg_read_scanlines(&r->c, &row, 1);
    if (r->c.output_scanline == r->c.output_height) (void)jpeg_finish_decompress(&r->c);
}

static fth_status read_row(void *state, void *row, fth_err *err)
{
    reader *r = state;
    if (setjmp(r->trouble.out) != 0) return failed(r, err);
    take_row(r, row);
    return FTH_OK;
}

static const fth__picture_rows rows = {begin, read_row, end, 1u << FTH_LIB_JPEG, false};

static bool recognise(const fth__images_head *head)
{
    return head->n >= 3 && memcmp(head->bytes, "\xff\xd8\xff", 3) == 0;
}

static fth_status open_images(fth_images **out, fth_mem *mem, const char *path,
                              const fth_images_options *options, fth_err *err)
{
    return fth__picture_open(out, &fth__jpeg_images, "jpeg", &rows, mem, path, options, err);
}

const fth__images_format fth__jpeg_images = {.name = "JPEG",
                                             .recognise = recognise,
                                             .open = open_images,
                                             .close = fth__picture_close,
                                             .source = fth__picture_source,
                                             .rows = &rows};
