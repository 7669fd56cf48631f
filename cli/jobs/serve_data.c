/* serve_data.c - page and data as texts: compressed, with an ETag that does not depend on the
 * clock.
 */
#include "serve.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static fth_status print(serve_text *t, const fth_view *view, bool page, fth_err *err)
{
    FILE *f = open_memstream(&t->plain, &t->bytes);
    if (!f) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the page");
    fth_status s = page ? fth_report_print(view, &(fth_report_options){.live = true}, f, err)
                        : fth_view_print_json(view, f, err);
    if (fclose(f) != 0 && s == FTH_OK) s = FTH_FAIL(err, FTH_E_NOMEM, "no memory for the page");
    return s;
}

/* As gzip; without memory it is sent as it is. */
static void pack(serve_text *t)
{
    enum { GZIP = 15 + 16, MEMORY = 8 };
    z_stream z = {0};
    if (t->bytes > UINT32_MAX || deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP, MEMORY,
                                              Z_DEFAULT_STRATEGY) != Z_OK)
        return;
    const size_t room = deflateBound(&z, (uLong)t->bytes);
    t->packed = malloc(room);
    if (t->packed) {
        z.next_in = (Bytef *)t->plain;
        z.avail_in = (uInt)t->bytes;
        z.next_out = (Bytef *)t->packed;
        z.avail_out = (uInt)room;
        const bool whole = deflate(&z, Z_FINISH) == Z_STREAM_END;
        t->packed_bytes = room - z.avail_out;
        if (!whole) {
            free(t->packed);
            t->packed = NULL;
        }
    }
    deflateEnd(&z);
}

/* The time of the view stands on a line of its own, and no text can hold a line break. */
static uint64_t hash_without_time(const serve_text *t)
{
    static const char mark[] = "\n  \"now\": ";
    const char *time = strstr(t->plain, mark);
    if (!time) return fth_hash_bytes(t->plain, t->bytes, 0);
    const char *rest = strchr(time + 1, '\n');
    const size_t before = (size_t)(time - t->plain),
                 after = rest ? t->bytes - (size_t)(rest - t->plain) : 0;
    return fth_hash_bytes(rest, after, fth_hash_bytes(t->plain, before, 0));
}

fth_status serve_text_make(serve_text *t, const fth_view *view, bool page, fth_err *err)
{
    *t = (serve_text){0};
    const fth_status s = print(t, view, page, err);
    if (s != FTH_OK) {
        serve_text_free(t);
        return s;
    }
    pack(t);
    snprintf(t->tag, sizeof t->tag, "\"%016llx\"", (unsigned long long)hash_without_time(t));
    return FTH_OK;
}

void serve_text_free(serve_text *t)
{
    free(t->plain);
    free(t->packed);
    *t = (serve_text){0};
}
