/* view.c - see view.h. The page is viewer.html, rows of a .splat as base64, and viewer.js. */
#include "view.h"

#include "../model/formats.h"

#include <stdio.h>
#include <string.h>

extern const char gs_viewer_html[], gs_viewer_js[]; /* made from the files when this is built */

typedef struct page {
    FILE *file;
    const char *path;
    uint8_t rest[3]; /* bytes that did not fill three */
    int n_rest;
} page;

static fth_status put(page *p, const char *text, size_t n, fth_err *err)
{
    if (fwrite(text, 1, n, p->file) == n) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: writing the page failed", p->path);
}

/* Three bytes, of which n are there, as four letters. */
static void encode(const uint8_t *b, int n, char out[4])
{
    static const char letter[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint32_t v =
        (uint32_t)b[0] << 16 | (uint32_t)(n > 1 ? b[1] : 0) << 8 | (uint32_t)(n > 2 ? b[2] : 0);
    for (int i = 0; i < 4; i++) out[i] = i <= n ? letter[v >> (18 - 6 * i) & 63] : '=';
}

static fth_status put_rows(void *self, int64_t from, int64_t n, const void *rows, fth_err *err)
{
    page *p = self;
    const uint8_t *b = rows;
    (void)from;
    for (int64_t i = 0; i < n * GS_DOTSPLAT_ROW; i++) {
        char four[4];
        p->rest[p->n_rest++] = b[i];
        if (p->n_rest < 3) continue;
        encode(p->rest, 3, four);
        p->n_rest = 0;
        FTH_TRY(put(p, four, sizeof four, err));
    }
    return FTH_OK;
}

static fth_status put_page(page *p, const gs_model *m, fth_err *err)
{
    static const char before[] = "<script id=\"splats\" type=\"text/plain\">",
                      between[] = "</script>\n<script>\n",
                      after[] = "</script>\n</body>\n</html>\n";
    char four[4];
    FTH_TRY(put(p, gs_viewer_html, strlen(gs_viewer_html), err));
    FTH_TRY(put(p, before, strlen(before), err));
    FTH_TRY(gs_dotsplat_write(m, put_rows, p, err));
    if (p->n_rest > 0) {
        encode(p->rest, p->n_rest, four);
        FTH_TRY(put(p, four, sizeof four, err));
    }
    FTH_TRY(put(p, between, strlen(between), err));
    FTH_TRY(put(p, gs_viewer_js, strlen(gs_viewer_js), err));
    return put(p, after, strlen(after), err);
}

bool gs_view_is(const char *path)
{
    return gs_path_ends(path, ".html") || gs_path_ends(path, ".htm");
}

fth_status gs_view_save(const gs_model *m, const char *path, fth_err *err)
{
    fth_file_stream *stream = NULL;
    FTH_TRY(fth_file_stream_create(&stream, m->mem, path, err));
    page p = {.file = fth_file_stream_file(stream), .path = path};
    const fth_status s = put_page(&p, m, err);
    if (s == FTH_OK) return fth_file_stream_commit(stream, err);
    fth_file_stream_abandon(stream);
    return s;
}
