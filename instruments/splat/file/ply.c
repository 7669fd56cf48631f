/* ply.c - rows of a PLY in each of its formats; see ply.h. */
#include "ply.h"

#include <fathom/number.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WORD = 64 };

/* ---- opening ---- */

static fth_status open_inner(gs_ply *p, fth_mem *mem, fth_err *err)
{
    void *block = NULL;
    uint32_t most = 1;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, GS_PLY_COLUMNS * sizeof(gs_ply_column), "PLY columns",
                         &block, err));
    p->all = block;
    FTH_TRY(gs_ply_read_header(p, err));
    const gs_ply_element *vertex = gs_ply_element_named(p, "vertex");
    if (!vertex || vertex->columns == 0)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s, byte %" PRIu64 ": expected an element vertex with properties in the "
                        "header, found %s",
                        p->bytes.path, p->start, vertex ? "none of it" : "none");
    for (int i = 0; i < p->elements; i++)
        if (p->element[i].stride > most) most = p->element[i].stride;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, most, "a PLY row", &block, err));
    p->row = block;
    return gs_ply_enter(p, vertex, err);
}

fth_status gs_ply_open(gs_ply *p, fth_mem *mem, const char *path, fth_err *err)
{
    *p = (gs_ply){0};
    FTH_TRY(gs_bytes_open(&p->bytes, mem, path, err));
    const fth_status s = open_inner(p, mem, err);
    if (s != FTH_OK) gs_ply_close(p);
    return s;
}

void gs_ply_close(gs_ply *p)
{
    if (p->all) (void)fth_mem_release(p->bytes.mem, p->all, NULL);
    if (p->row) (void)fth_mem_release(p->bytes.mem, p->row, NULL);
    gs_bytes_close(&p->bytes);
    *p = (gs_ply){0};
}

const gs_ply_element *gs_ply_element_named(const gs_ply *p, const char *name)
{
    for (int i = 0; i < p->elements; i++)
        if (strcmp(p->element[i].name, name) == 0) return &p->element[i];
    return NULL;
}

/* ---- the element ---- */

static fth_status skip_lines(gs_ply *p, int64_t n, fth_err *err)
{
    while (n > 0) {
        char c;
        FTH_TRY(gs_bytes_take(&p->bytes, &c, 1, "a line of a PLY", err));
        if (c != '\n') continue;
        p->line++;
        n--;
    }
    return FTH_OK;
}

static fth_status skip_element(gs_ply *p, const gs_ply_element *e, const char *wanted, fth_err *err)
{
    if (p->coding == GS_PLY_ASCII) return skip_lines(p, e->rows, err);
    if (!e->lists)
        return e->stride ? gs_bytes_skip(&p->bytes, (uint64_t)e->rows, e->stride,
                                         "rows of an element", err)
                         : FTH_OK;
    FTH_FAIL(err, FTH_E_FILE_FEATURE,
             "%s, byte %" PRIu64 ": expected element %s before those with lists, found '%s' first",
             p->bytes.path, p->start, wanted, e->name);
    fth_err_hint(err, "write the file again with the vertices first");
    return FTH_E_FILE_FEATURE;
}

/* Whether the rest of the file can hold the rows; a number in ASCII has a digit and a separator. */
static fth_status check_room(const gs_ply *p, const gs_ply_element *e, fth_err *err)
{
    const gs_bytes *b = &p->bytes;
    const bool ascii = p->coding == GS_PLY_ASCII;
    const uint64_t left = b->size - b->at, least = ascii ? 2 * (uint64_t)e->columns : e->stride;
    if (least == 0 || (uint64_t)e->rows <= (left + (ascii ? 1 : 0)) / least) return FTH_OK;
    FTH_FAIL(err, FTH_E_FILE_SHORT,
             "%s, byte %" PRIu64 ": expected %" PRId64 " rows of element %s with %s%" PRIu64
             " bytes each, found %" PRIu64 " bytes to the end of the file",
             b->path, b->at, e->rows, e->name, ascii ? "at least " : "", least, left);
    fth_err_hint(err, "the file was cut short: copy it or export it again");
    return FTH_E_FILE_SHORT;
}

fth_status gs_ply_enter(gs_ply *p, const gs_ply_element *e, fth_err *err)
{
    p->bytes.at = p->start;
    p->line = p->start_line;
    for (const gs_ply_element *before = p->element; before != e; before++)
        FTH_TRY(skip_element(p, before, e->name, err));
    FTH_TRY(check_room(p, e, err));
    p->rows = e->rows;
    p->stride = e->stride;
    p->columns = e->columns;
    p->column = p->all + e->first;
    return FTH_OK;
}

int gs_ply_find(const gs_ply *p, const char *name)
{
    for (int i = 0; i < p->columns; i++)
        if (strcmp(p->column[i].name, name) == 0) return i;
    return -1;
}

int gs_ply_numbered(const gs_ply *p, const char *stem, int i)
{
    char name[GS_PLY_NAME];
    snprintf(name, sizeof name, "%s%d", stem, i);
    return gs_ply_find(p, name);
}

const char *gs_ply_where(const gs_ply *p, char text[GS_PLY_WHERE])
{
    if (p->coding == GS_PLY_ASCII)
        snprintf(text, GS_PLY_WHERE, "%s:%" PRId64, p->bytes.path, p->line);
    else
        snprintf(text, GS_PLY_WHERE, "%s, byte %" PRIu64, p->bytes.path, p->bytes.at - p->stride);
    return text;
}

/* ---- rows ---- */

/* `word` follows `n` numbers; "": the line ends there. */
static fth_status bad_row(const gs_ply *p, int n, const char *word, fth_err *err)
{
    const gs_bytes *b = &p->bytes;
    FTH_FAIL(err, FTH_E_FILE_FORMAT,
             "%s:%" PRId64 ", byte %" PRIu64
             ": expected a line of %d numbers, found %d and then %s%.20s%s",
             b->path, p->line, b->at, p->columns, n, word[0] ? "'" : "its end", word,
             word[0] ? "'" : "");
    fth_err_hint(err, "an ASCII PLY has a line for each row");
    return FTH_E_FILE_FORMAT;
}

/* The next word of the line, "" at its end; the end of the file ends the line, too. */
static fth_status next_word(gs_ply *p, char word[WORD], bool *ends, fth_err *err)
{
    int n = 0;
    *ends = false;
    while (!*ends && n < WORD - 1) {
        char c = '\n';
        if (p->bytes.at < p->bytes.size)
            FTH_TRY(gs_bytes_take(&p->bytes, &c, 1, "a number of a PLY", err));
        *ends = c == '\n';
        if (c != ' ' && c != '\t' && c != '\r' && c != '\n')
            word[n++] = c;
        else if (n > 0)
            break;
    }
    word[n] = '\0';
    return FTH_OK;
}

static fth_status read_line(gs_ply *p, fth_err *err)
{
    char word[WORD];
    bool ends = false;
    p->line++;
    for (int i = 0; i < p->columns; i++) {
        double v = 0;
        if (ends) return bad_row(p, i, "", err);
        FTH_TRY(next_word(p, word, &ends, err));
        if (!word[0]) return bad_row(p, i, "", err);
        if (!fth_real_parse(word, &v)) return bad_row(p, i, word, err);
        memcpy(p->row + p->column[i].offset, &v, sizeof v);
    }
    while (!ends) {
        FTH_TRY(next_word(p, word, &ends, err));
        if (word[0]) return bad_row(p, p->columns, word, err);
    }
    return FTH_OK;
}

static void turn_bytes(const gs_ply *p)
{
    for (int i = 0; i < p->columns; i++) {
        const uint32_t from = p->column[i].offset,
                       end = i + 1 < p->columns ? p->column[i + 1].offset : p->stride;
        for (uint32_t a = from, b = end - 1; a < b; a++, b--) {
            const uint8_t kept = p->row[a];
            p->row[a] = p->row[b];
            p->row[b] = kept;
        }
    }
}

fth_status gs_ply_next(gs_ply *p, fth_err *err)
{
    if (p->coding == GS_PLY_ASCII) return read_line(p, err);
    FTH_TRY(gs_bytes_take(&p->bytes, p->row, p->stride, "a PLY row", err));
    if (p->coding == GS_PLY_BIG) turn_bytes(p);
    return FTH_OK;
}

#define READ(type)                                                                                 \
    do {                                                                                           \
        type v;                                                                                    \
        memcpy(&v, from, sizeof v);                                                                \
        return (double)v;                                                                          \
    } while (0)

double gs_ply_real(const gs_ply *p, int column)
{
    const uint8_t *from = p->row + p->column[column].offset;
    switch (p->coding == GS_PLY_ASCII ? GS_PLY_F64 : p->column[column].type) {
    case GS_PLY_I8: READ(int8_t);
    case GS_PLY_U8: READ(uint8_t);
    case GS_PLY_I16: READ(int16_t);
    case GS_PLY_U16: READ(uint16_t);
    case GS_PLY_I32: READ(int32_t);
    case GS_PLY_U32: READ(uint32_t);
    case GS_PLY_F32: READ(float);
    case GS_PLY_F64: READ(double);
    case GS_PLY_TYPES: break;
    }
    return 0;
}

/* ---- points ---- */

static uint8_t to_byte(double v, bool unit)
{
    const double byte = unit ? v * 255 + 0.5 : v;
    return byte >= 255 ? 255 : byte > 0 ? (uint8_t)byte : 0; /* NaN is black */
}

fth_status gs_ply_points(gs_ply *p, float (*point)[3], uint8_t (*colour)[3], fth_err *err)
{
    static const char *const names[6] = {"x", "y", "z", "red", "green", "blue"};
    char text[GS_PLY_WHERE];
    int column[6];
    for (int k = 0; k < 6; k++) {
        column[k] = gs_ply_find(p, names[k]);
        if (k < 3 && column[k] < 0)
            return FTH_FAIL(err, FTH_E_FILE_KEY,
                            "%s: expected properties x, y and z of its vertices, found no %s",
                            p->bytes.path, names[k]);
    }
    for (int64_t i = 0; i < p->rows; i++) {
        FTH_TRY(gs_ply_next(p, err));
        for (int k = 0; k < 3; k++) {
            point[i][k] = (float)gs_ply_real(p, column[k]);
            if (!isfinite(point[i][k]))
                return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                                "%s: point %" PRId64 ": expected a finite position, found %g as %s",
                                gs_ply_where(p, text), i, gs_ply_real(p, column[k]), names[k]);
            const int c = column[3 + k];
            const bool unit = c >= 0 && p->column[c].type >= GS_PLY_F32;
            colour[i][k] = c < 0 ? 255 : to_byte(gs_ply_real(p, c), unit);
        }
    }
    return FTH_OK;
}
