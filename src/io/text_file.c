/* text_file.c - JSON and lines as files: read whole, written whole or not at all.
 *
 * src/text makes and reads texts in memory and knows no files.
 */
#include <fathom/json.h>
#include <fathom/lines.h>

#include "io/file.h"
#include "mem/heap.h"
#include "text/json.h"

#include <inttypes.h>

fth_status fth_json_load(fth_json **out, fth_mem *mem, const char *path, fth_err *err)
{
    *out = NULL;
    fth_file *file = NULL;
    FTH_TRY(fth_file_open(&file, mem, path, err));
    fth_status s = FTH_OK;
    void *text = NULL;
    if (file->bytes > FTH__JSON_BYTES)
        s = FTH_FAIL(err, FTH_E_FILE_FORMAT,
                     "%s: too much JSON: it has %" PRIu64 " bytes, 64 MiB are allowed", path,
                     file->bytes);
    const uint64_t bytes = file->bytes;
    if (s == FTH_OK) s = fth__heap_take(mem, (int64_t)bytes, 1, &text, err);
    if (s == FTH_OK) s = fth_file_read(file, 0, bytes, text, "the text", err);
    if (s == FTH_OK) s = fth_json_parse(out, mem, path, text, (size_t)bytes, err);
    fth__heap_free(mem, text);
    fth_file_close(file);
    return s;
}

fth_status fth_json_save(fth_json_writer *w, const char *path, fth_err *err)
{
    fth_status s = fth_json_end(w, err);
    if (s == FTH_OK) s = fth_file_save(w->mem, path, w->data, (uint64_t)w->used, err);
    fth_json_free(w);
    return s;
}

fth_status fth_lines_save(fth_lines *t, const char *path, fth_err *err)
{
    const fth_status s = t->status == FTH_OK
                             ? fth_file_save(t->mem, path, t->data, (uint64_t)t->used, err)
                             : FTH_FAIL(err, t->status, "no memory for the text of %s", path);
    fth_lines_free(t);
    return s;
}
