/* ply.c - see ply.h. */
#include "ply.h"

#include <fathom/number.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LINE = 256, LINES = 4096 };

static const struct type {
    const char *name[2];
    uint32_t bytes;
} types[GS_PLY_TYPES] = {{{"char", "int8"}, 1},     {{"uchar", "uint8"}, 1},
                         {{"short", "int16"}, 2},   {{"ushort", "uint16"}, 2},
                         {{"int", "int32"}, 4},     {{"uint", "uint32"}, 4},
                         {{"float", "float32"}, 4}, {{"double", "float64"}, 8}};

/* ---- the header ---- */

typedef struct header {
    gs_ply *ply;
    char line[LINE];
    uint64_t from; /* where the line begins */
    int elements;
    bool format;
} header;

static fth_status bad(const header *h, const char *expected, fth_err *err)
{
    return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s, byte %" PRIu64 ": expected %s, found '%.60s'",
                    h->ply->bytes.path, h->from, expected, h->line);
}

static fth_status next_line(header *h, fth_err *err)
{
    h->from = h->ply->bytes.at;
    for (int n = 0; n < LINE; n++) {
        FTH_TRY(gs_bytes_take(&h->ply->bytes, h->line + n, 1, "a line of the PLY header", err));
        if (h->line[n] == '\n') {
            if (n > 0 && h->line[n - 1] == '\r') n--;
            h->line[n] = '\0';
            return FTH_OK;
        }
    }
    h->line[LINE - 1] = '\0';
    return bad(h, "a line of the PLY header of at most 255 bytes", err);
}

static fth_status read_format(header *h, const char *format, fth_err *err)
{
    h->format = true;
    if (strcmp(format, "binary_little_endian 1.0") == 0) return FTH_OK;
    const fth_status s = bad(h, "format binary_little_endian 1.0", err);
    fth_err_hint(err, "write the file again as binary PLY, little endian");
    return s;
}

static fth_status read_element(header *h, const char *rest, fth_err *err)
{
    static const char vertex[] = "vertex ";
    if (h->elements++ > 0) return FTH_OK;
    if (strncmp(rest, vertex, sizeof vertex - 1) != 0 ||
        !fth_int_parse(rest + sizeof vertex - 1, &h->ply->rows) || h->ply->rows < 0)
        return bad(h, "'element vertex' and its count as the first element", err);
    return FTH_OK;
}

static fth_status read_property(header *h, char *rest, fth_err *err)
{
    gs_ply *p = h->ply;
    if (h->elements != 1) return h->elements > 1 ? FTH_OK : bad(h, "an element first", err);
    char *name = strchr(rest, ' ');
    if (!name || strlen(name + 1) >= GS_PLY_NAME || !name[1])
        return bad(h, "a property with a type and a name", err);
    *name++ = '\0';
    for (int t = 0; t < GS_PLY_TYPES; t++) {
        if (strcmp(rest, types[t].name[0]) != 0 && strcmp(rest, types[t].name[1]) != 0) continue;
        if (p->columns == GS_PLY_COLUMNS) return bad(h, "at most 512 properties", err);
        gs_ply_column *c = &p->column[p->columns++];
        *c = (gs_ply_column){.type = (gs_ply_type)t, .offset = p->stride};
        snprintf(c->name, sizeof c->name, "%s", name);
        p->stride += types[t].bytes;
        return FTH_OK;
    }
    return bad(h, "a property of one number, float, double or an integer", err);
}

static fth_status read_header(header *h, fth_err *err)
{
    static const struct word {
        const char *text;
        int kind;
    } words[] = {
        {"format ", 0}, {"element ", 1}, {"property ", 2}, {"comment", 3}, {"obj_info", 3}};
    FTH_TRY(next_line(h, err));
    if (strcmp(h->line, "ply") != 0) return bad(h, "'ply'", err);
    for (int n = 0; n < LINES; n++) {
        int kind = -1;
        char *rest = h->line;
        FTH_TRY(next_line(h, err));
        if (strcmp(h->line, "end_header") == 0) {
            if (!h->format) return bad(h, "a format before the end of the header", err);
            if (h->elements == 0) return bad(h, "an element before the end of the header", err);
            return FTH_OK;
        }
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
            if (strncmp(h->line, words[i].text, strlen(words[i].text)) == 0) {
                kind = words[i].kind;
                rest = h->line + strlen(words[i].text);
                break;
            }
        if (kind == 0) FTH_TRY(read_format(h, rest, err));
        if (kind == 1) FTH_TRY(read_element(h, rest, err));
        if (kind == 2) FTH_TRY(read_property(h, rest, err));
        if (kind < 0) return bad(h, "a line of a PLY header", err);
    }
    return bad(h, "the end of the header", err);
}

/* ---- rows ---- */

static fth_status open_inner(gs_ply *p, fth_mem *mem, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, GS_PLY_COLUMNS * sizeof(gs_ply_column), "PLY columns",
                         &block, err));
    p->column = block;
    header h = {.ply = p};
    FTH_TRY(read_header(&h, err));
    const gs_bytes *b = &p->bytes;
    if (p->columns == 0)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s: expected properties of the vertices, found none", b->path);
    if ((uint64_t)p->rows > (b->size - b->at) / p->stride) {
        FTH_FAIL(err, FTH_E_FILE_SHORT,
                 "%s, byte %" PRIu64 ": expected %" PRId64 " rows of %" PRIu32
                 " bytes behind the header, found %" PRIu64 " bytes",
                 b->path, b->at, p->rows, p->stride, b->size - b->at);
        fth_err_hint(err, "the file was cut short: copy it or export it again");
        return FTH_E_FILE_SHORT;
    }
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, p->stride, "a PLY row", &block, err));
    p->row = block;
    return FTH_OK;
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
    if (p->column) (void)fth_mem_release(p->bytes.mem, p->column, NULL);
    if (p->row) (void)fth_mem_release(p->bytes.mem, p->row, NULL);
    gs_bytes_close(&p->bytes);
    *p = (gs_ply){0};
}

int gs_ply_find(const gs_ply *p, const char *name)
{
    for (int i = 0; i < p->columns; i++)
        if (strcmp(p->column[i].name, name) == 0) return i;
    return -1;
}

fth_status gs_ply_next(gs_ply *p, fth_err *err)
{
    return gs_bytes_take(&p->bytes, p->row, p->stride, "a PLY row", err);
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
    switch (p->column[column].type) {
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
                                "%s, byte %" PRIu64 ": point %" PRId64
                                ": expected a finite position, found %g as %s",
                                p->bytes.path, p->bytes.at - p->stride, i,
                                gs_ply_real(p, column[k]), names[k]);
            const int c = column[3 + k];
            const bool unit = c >= 0 && p->column[c].type >= GS_PLY_F32;
            colour[i][k] = c < 0 ? 255 : to_byte(gs_ply_real(p, c), unit);
        }
    }
    return FTH_OK;
}
