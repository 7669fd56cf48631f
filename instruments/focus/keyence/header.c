/* header.c - see header.h.
 *
 * The same name occurs several times in the text: the sizes of the settings, of the image in pixels
 * and of the image in nm are the first, second and third Width. So values are found by counting.
 */
#include "header.h"

#include <math.h>
#include <string.h>

static const char opening[] = "<Data>", closing[] = "</Data>";
enum {
    END = 256 << 10,   /* bytes at each end of a file that are looked at first */
    LONGEST = 4 << 20, /* the text has some 20 KiB */
    OPENING = sizeof opening - 1,
    CLOSING = sizeof closing - 1
};

static const char *find(const char *from, const char *end, const char *what)
{
    return end > from ? memmem(from, (size_t)(end - from), what, strlen(what)) : NULL;
}

/* The text of element number `nth`, from 1, whose tag has `name` in it. */
static bool value_of(const char *from, const char *end, const char *name, int nth, char *out,
                     size_t bytes)
{
    const char *at = from;
    for (int i = 0; i < nth; i++) {
        at = find(at, end, name);
        if (!at) return false;
        at += strlen(name);
    }
    const char *begin = find(at, end, ">");
    const char *stop = begin ? find(begin + 1, end, "<") : NULL;
    if (!stop || (size_t)(stop - begin) > bytes) return false;
    memcpy(out, begin + 1, (size_t)(stop - begin - 1));
    out[stop - begin - 1] = 0;
    return true;
}

typedef struct wanted {
    const char *name;
    int nth;
    const char *what;
    double per;   /* unit of a number; 0: a text */
    size_t place; /* in fo_keyence_header   */
} wanted;

#define PLACE(member) offsetof(fo_keyence_header, member)
static const wanted values[] = {
    {"ShootingDateTime", 1, "time", 1e7, PLACE(time_s)}, /* in units of 100 ns */
    {"LensName", 1, "objective", 0, PLACE(objective)},
    {"Observation Type", 1, "channel", 0, PLACE(channel)},
    {"Width Type", 2, "width in pixels", 1, PLACE(width_px)},
    {"Height Type", 2, "height in pixels", 1, PLACE(height_px)},
    {"Width Type", 3, "width in nm", 1e3, PLACE(width_um)},
    {"Height Type", 3, "height in nm", 1e3, PLACE(height_um)},
};

static bool is_pixels(const wanted *v)
{
    return v->place == PLACE(width_px) || v->place == PLACE(height_px);
}

static fth_status take(fo_keyence_header *out, const wanted *v, const char *from, const char *end,
                       const char *path, fth_err *err)
{
    char text[FO_KEYENCE_TEXT];
    int64_t number = 0;
    void *to = (char *)out + v->place;
    if (!value_of(from, end, v->name, v->nth, text, sizeof text))
        return FTH_FAIL(
            err, FTH_E_FILE_KEY,
            "%s: the Keyence text has no %s (%s, number %d); is it a file of the microscope?", path,
            v->what, v->name, v->nth);
    if (v->per == 0) {
        memcpy(to, text, sizeof text);
        return FTH_OK;
    }
    if (!fth_int_parse(text, &number) || number < 1)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s: %s in the Keyence text is \"%s\"; expected a number above 0", path,
                        v->what, text);
    if (is_pixels(v))
        *(int64_t *)to = number;
    else
        *(double *)to = (double)number / v->per;
    return FTH_OK;
}

fth_status fo_keyence_header_parse(fo_keyence_header *out, const char *bytes, uint64_t n,
                                   const char *path, fth_err *err)
{
    *out = (fo_keyence_header){0};
    const char *from = find(bytes, bytes + n, opening);
    const char *end = from ? find(from, bytes + n, closing) : NULL;
    if (!end)
        return FTH_FAIL(
            err, FTH_E_FILE_KEY,
            "%s: no text between <Data> and </Data>; is it a file of a Keyence microscope?", path);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        FTH_TRY(take(out, &values[i], from, end, path, err));
    return FTH_OK;
}

/* ---- where it is in a file ---- */

typedef struct search {
    fth_file *file;
    char *buffer; /* of 2 * END bytes */
    uint64_t at;  /* of the opening, once it is found */
} search;

/* Look for the opening in [from, from+n); n is at most 2 * END. */
static fth_status look(search *s, uint64_t from, uint64_t n, bool *found, fth_err *err)
{
    FTH_TRY(fth_file_read(s->file, from, n, s->buffer, "a part of the file", err));
    const char *at = find(s->buffer, s->buffer + n, opening);
    *found = at != NULL;
    if (at) s->at = from + (uint64_t)(at - s->buffer);
    return FTH_OK;
}

static fth_status find_opening(search *s, bool *found, fth_err *err)
{
    const uint64_t bytes = fth_file_bytes(s->file), end = bytes < END ? bytes : END;
    FTH_TRY(look(s, bytes - end, end, found, err));
    if (!*found) FTH_TRY(look(s, 0, end, found, err));
    for (uint64_t at = end; !*found && at < bytes; at += END) {
        const uint64_t from = at - OPENING, n = bytes - from < 2 * END ? bytes - from : 2 * END;
        FTH_TRY(look(s, from, n, found, err));
    }
    return FTH_OK;
}

static fth_status read_text(search *s, fth_mem *mem, fo_keyence_header *out, const char *path,
                            fth_err *err)
{
    const uint64_t rest = fth_file_bytes(s->file) - s->at, n = rest < LONGEST ? rest : LONGEST;
    void *text = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_META, n, "Keyence text", &text, err));
    fth_status status = fth_file_read(s->file, s->at, n, text, "the Keyence text", err);
    if (status == FTH_OK) status = fo_keyence_header_parse(out, text, n, path, err);
    fth_mem_release(mem, text, NULL);
    return status;
}

fth_status fo_keyence_header_read(fo_keyence_header *out, fth_mem *mem, const char *path,
                                  fth_err *err)
{
    search s = {0};
    bool found = false;
    void *buffer = NULL;
    *out = (fo_keyence_header){0};
    FTH_TRY(fth_file_open(&s.file, mem, path, err));
    fth_status status = fth_mem_take(mem, FTH_MEM_META, 2 * END, "Keyence search", &buffer, err);
    s.buffer = buffer;
    if (status == FTH_OK) status = find_opening(&s, &found, err);
    if (status == FTH_OK && found) status = read_text(&s, mem, out, path, err);
    if (status == FTH_OK && !found) status = fo_keyence_header_parse(out, "", 0, path, err);
    if (buffer) fth_mem_release(mem, buffer, NULL);
    fth_file_close(s.file);
    return status;
}
