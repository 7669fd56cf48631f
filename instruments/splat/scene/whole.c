/* whole.c - whether an image file reaches its end, without decoding it.
 *
 * Of a PNG alone, which is a list of chunks that ends with IEND: reading its last bytes tells.
 * Decoding all images would delay every start, and a test view that is found cut at the first
 * evaluation costs the iterations before it.
 */
#include "scene.h"

#include <inttypes.h>
#include <string.h>

enum { MARK = 8, HEAD = 8, CHUNK = 12 }; /* bytes: of the file's mark; length and type; and a CRC */

static bool is_end(const unsigned char chunk[HEAD])
{
    return memcmp(chunk + 4, "IEND", 4) == 0;
}

/* From chunk to chunk, for files that have something behind IEND; `at`: the first that is cut. */
static fth_status walk(fth_file *f, uint64_t *at, bool *whole, fth_err *err)
{
    const uint64_t size = fth_file_bytes(f);
    unsigned char h[HEAD];
    *whole = false;
    for (*at = MARK; size - *at >= CHUNK;) {
        FTH_TRY(fth_file_read(f, *at, HEAD, h, "a chunk of the PNG", err));
        *whole = is_end(h);
        const uint64_t bytes =
            (uint64_t)h[0] << 24 | (uint64_t)h[1] << 16 | (uint64_t)h[2] << 8 | h[3];
        if (*whole || bytes + CHUNK > size - *at) return FTH_OK;
        *at += bytes + CHUNK;
    }
    return FTH_OK;
}

static fth_status check(fth_file *f, const char *path, fth_err *err)
{
    static const unsigned char mark[MARK] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    const uint64_t size = fth_file_bytes(f);
    unsigned char h[MARK];
    uint64_t at = 0;
    bool whole = false;
    if (size < MARK + CHUNK) return FTH_OK; /* whoever reads its head says so */
    FTH_TRY(fth_file_read(f, 0, MARK, h, "its first bytes", err));
    if (memcmp(h, mark, MARK) != 0) return FTH_OK;
    FTH_TRY(fth_file_read(f, size - CHUNK, HEAD, h, "its last chunk", err));
    if (is_end(h)) return FTH_OK;
    FTH_TRY(walk(f, &at, &whole, err));
    if (whole) return FTH_OK;
    FTH_FAIL(err, FTH_E_FILE_SHORT,
             "%s, byte %" PRIu64 ": expected chunks of a PNG up to IEND, found the end of the file "
             "at byte %" PRIu64,
             path, at, size);
    fth_err_hint(err, "the file was cut short: copy it or export it again");
    return FTH_E_FILE_SHORT;
}

fth_status gs_image_check_end(fth_mem *mem, const char *path, fth_err *err)
{
    fth_file *f = NULL;
    FTH_TRY(fth_file_open(&f, mem, path, err));
    const fth_status s = check(f, path, err);
    fth_file_close(f);
    return s;
}
