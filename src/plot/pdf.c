/* pdf.c - a PDF of one page, written from front to end.
 *
 * The page is a list of compressed streams that a reader puts together. A picture ends the stream
 * that is open and begins a new one behind itself, so nothing waits in memory but the places of
 * the objects. Numbers 1 to 4 are kept for what is known last: catalogue, pages, page, resources.
 * Transparency is one of 256 graphics states, of which those used are written.
 */
#include "base/assert.h"
#include "plot/pen.h"

#include <inttypes.h>
#include <string.h>

enum { CATALOGUE = 1, PAGES, PAGE, RESOURCES, FIRST };
enum { PER_PICTURE = 6 }; /* picture, its transparency, the stream after it, and three lengths */

struct fth__pdf {
    fth__plot_stream *out;
    fth__words file, page; /* uncompressed, and into the open stream */
    void *pack_block;
    fth__deflate *pack;
    uint8_t *row;     /* of a picture */
    uint64_t *offset; /* of object i */
    int64_t *picture, *stream;
    int64_t next, n_pictures, n_streams;
    int64_t most;   /* pictures that there is room for */
    uint64_t start; /* of the data of the open object */
    double width, height;
    int alpha; /* of the present graphics state; -1: not known */
    bool used[256], ok;
};

static uint64_t up(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static uint64_t objects(int64_t pictures)
{
    return FIRST + 2 + PER_PICTURE * (uint64_t)pictures;
}

uint64_t fth__pdf_bytes(int64_t pictures, int64_t widest)
{
    return up(sizeof(fth__pdf)) + up(fth__deflate_bytes()) + up((uint64_t)widest * 3) +
           up(objects(pictures) * 8) + 2 * up(((uint64_t)pictures + 1) * 8);
}

static uint64_t here(const fth__pdf *p)
{
    return p->out->written + p->out->used;
}

static void open_object(fth__pdf *p, int64_t id)
{
    FTH_ASSERT(id >= CATALOGUE && (uint64_t)id < objects(p->most));
    p->offset[id] = here(p);
    fth__words_print(&p->file, "%" PRId64 " 0 obj\n", id);
}

/* ---- compressed streams ---- */

/* `facts` are the entries of its dictionary. Its length is the next object. */
static int64_t open_stream(fth__pdf *p, const char *facts)
{
    const int64_t id = p->next;
    p->next += 2;
    open_object(p, id);
    fth__words_print(&p->file, "<< %s/Filter /FlateDecode /Length %" PRId64 " 0 R >>\nstream\n",
                     facts, id + 1);
    p->start = here(p);
    p->pack = fth__deflate_begin(p->pack_block, FTH__WRAP_ZLIB, fth__stream_put, p->out);
    p->page = (fth__words){fth__deflate_add, p->pack};
    return id;
}

static void close_stream(fth__pdf *p, int64_t id)
{
    p->ok &= fth__deflate_end(p->pack);
    const uint64_t length = here(p) - p->start;
    fth__words_print(&p->file, "\nendstream\nendobj\n");
    open_object(p, id + 1);
    fth__words_print(&p->file, "%" PRIu64 "\nendobj\n", length);
}

static void open_page(fth__pdf *p)
{
    FTH_ASSERT(p->n_streams <= p->most);
    p->stream[p->n_streams++] = open_stream(p, "");
    p->alpha = -1;
}

fth__pdf *fth__pdf_begin(void *block, fth__plot_stream *out, int64_t pictures, int64_t widest,
                         double width, double height)
{
    uint8_t *at = block;
    fth__pdf *p = block;
    *p = (fth__pdf){
        .out = out, .width = width, .height = height, .next = FIRST, .most = pictures, .ok = true};
    p->file = (fth__words){fth__stream_put, out};
    p->pack_block = at += up(sizeof *p);
    p->row = at += up(fth__deflate_bytes());
    p->offset = (uint64_t *)(void *)(at += up((uint64_t)widest * 3));
    p->picture = (int64_t *)(void *)(at += up(objects(pictures) * 8));
    p->stream = (int64_t *)(void *)(at + up(((uint64_t)pictures + 1) * 8));
    fth__words_print(&p->file, "%%PDF-1.4\n%%\xe2\xe3\xcf\xd3\n");
    open_page(p);
    fth__words_print(&p->page, "1 0 0 -1 0 ");
    fth__words_number(&p->page, height);
    fth__words_print(&p->page, "cm\n"); /* from here on y points down */
    return p;
}

/* ---- strokes ---- */

static void set_alpha(fth__pdf *p, double alpha)
{
    const int a = (int)(alpha * 255 + 0.5);
    FTH_ASSERT(a >= 0 && a < 256);
    if (a == p->alpha) return;
    p->alpha = a;
    p->used[a] = true;
    fth__words_print(&p->page, "/a%d gs\n", a);
}

static void set_colour(fth__pdf *p, fth_colour c, const char *word)
{
    for (int shift = 16; shift >= 0; shift -= 8)
        fth__words_number(&p->page, (c >> shift & 255) / 255.0);
    fth__words_print(&p->page, "%s\n", word);
}

void fth__pdf_fill(fth__pdf *p, cairo_t *cr, fth_colour c, double alpha)
{
    set_alpha(p, alpha);
    set_colour(p, c, "rg");
    fth__pdf_path(&p->page, cr);
    fth__words_print(&p->page, "f\n");
}

void fth__pdf_stroke(fth__pdf *p, cairo_t *cr, fth__stroke s, const double dash[2])
{
    set_alpha(p, s.alpha);
    set_colour(p, s.colour, "RG");
    fth__words_number(&p->page, s.width);
    fth__words_print(&p->page, "w %d J %d j [", s.round, s.round);
    for (int i = 0; s.dash != FTH_DASH_SOLID && i < 2; i++) fth__words_number(&p->page, dash[i]);
    fth__words_print(&p->page, "] 0 d\n");
    fth__pdf_path(&p->page, cr);
    fth__words_print(&p->page, "S\n");
}

void fth__pdf_clip(fth__pdf *p, cairo_t *cr)
{
    fth__words_print(&p->page, "q\n");
    fth__pdf_path(&p->page, cr);
    fth__words_print(&p->page, "W n\n");
}

void fth__pdf_unclip(fth__pdf *p)
{
    fth__words_print(&p->page, "Q\n");
    p->alpha = -1;
}

/* ---- pictures ---- */

static int64_t put_image(fth__pdf *p, const uint32_t *px, int64_t w, int64_t h, int64_t mask)
{
    char facts[200];
    int n = snprintf(facts, sizeof facts,
                     "/Type /XObject /Subtype /Image /Width %" PRId64 " /Height %" PRId64
                     " /BitsPerComponent 8 /ColorSpace %s ",
                     w, h, mask ? "/DeviceRGB" : "/DeviceGray");
    if (mask) snprintf(facts + n, sizeof facts - (size_t)n, "/SMask %" PRId64 " 0 R ", mask);
    const int64_t id = open_stream(p, facts);
    for (int64_t y = 0; y < h; y++) {
        for (int64_t x = 0; x < w; x++) {
            if (mask)
                fth__plain_colour(px[y * w + x], p->row + 3 * x);
            else
                p->row[x] = (uint8_t)(px[y * w + x] >> 24);
        }
        fth__deflate_add(p->pack, p->row, (uint64_t)(mask ? 3 * w : w));
    }
    close_stream(p, id);
    return id;
}

void fth__pdf_picture(fth__pdf *p, const uint32_t *px, int64_t w, int64_t h, const double box[4])
{
    close_stream(p, p->stream[p->n_streams - 1]);
    const int64_t mask = put_image(p, px, w, h, 0), id = put_image(p, px, w, h, mask);
    FTH_ASSERT(p->n_pictures < p->most);
    p->picture[p->n_pictures++] = id;
    open_page(p);
    set_alpha(p, 1);
    /* The picture is a unit square whose top row is at y = 1. */
    const double matrix[6] = {box[2], 0, 0, -box[3], box[0], box[1] + box[3]};
    fth__words_print(&p->page, "q ");
    for (int i = 0; i < 6; i++) fth__words_number(&p->page, matrix[i]);
    fth__words_print(&p->page, "cm /i%" PRId64 " Do Q\n", id);
}

/* ---- the end ---- */

static void put_resources(fth__pdf *p)
{
    open_object(p, RESOURCES);
    fth__words_print(&p->file, "<< /ExtGState <<");
    for (int a = 0; a < 256; a++) {
        if (!p->used[a]) continue;
        fth__words_print(&p->file, " /a%d << /ca ", a);
        fth__words_number(&p->file, a / 255.0);
        fth__words_print(&p->file, "/CA ");
        fth__words_number(&p->file, a / 255.0);
        fth__words_print(&p->file, ">>");
    }
    fth__words_print(&p->file, " >> /XObject <<");
    for (int64_t i = 0; i < p->n_pictures; i++)
        fth__words_print(&p->file, " /i%" PRId64 " %" PRId64 " 0 R", p->picture[i], p->picture[i]);
    fth__words_print(&p->file, " >> >>\nendobj\n");
}

static void put_page(fth__pdf *p)
{
    open_object(p, PAGE);
    fth__words_print(&p->file, "<< /Type /Page /Parent %d 0 R /Resources %d 0 R /MediaBox [0 0 ",
                     PAGES, RESOURCES);
    fth__words_number(&p->file, p->width);
    fth__words_number(&p->file, p->height);
    fth__words_print(&p->file, "] /Group << /S /Transparency /CS /DeviceRGB >> /Contents [");
    for (int64_t i = 0; i < p->n_streams; i++)
        fth__words_print(&p->file, " %" PRId64 " 0 R", p->stream[i]);
    fth__words_print(&p->file, " ] >>\nendobj\n");
    open_object(p, PAGES);
    fth__words_print(&p->file, "<< /Type /Pages /Count 1 /Kids [%d 0 R] >>\nendobj\n", PAGE);
    open_object(p, CATALOGUE);
    fth__words_print(&p->file, "<< /Type /Catalog /Pages %d 0 R >>\nendobj\n", PAGES);
}

bool fth__pdf_end(fth__pdf *p)
{
    close_stream(p, p->stream[p->n_streams - 1]);
    put_resources(p);
    put_page(p);
    const uint64_t table = here(p);
    fth__words_print(&p->file, "xref\n0 %" PRId64 "\n0000000000 65535 f \n", p->next);
    for (int64_t i = 1; i < p->next; i++)
        fth__words_print(&p->file, "%010" PRIu64 " 00000 n \n", p->offset[i]);
    fth__words_print(&p->file,
                     "trailer\n<< /Size %" PRId64 " /Root %d 0 R >>\nstartxref\n%" PRIu64
                     "\n%%%%EOF\n",
                     p->next, CATALOGUE, table);
    return p->ok;
}
