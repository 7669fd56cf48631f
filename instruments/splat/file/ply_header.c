/* ply_header.c - the header of a PLY: its format, elements and their properties; see ply.h. */
#include "ply.h"

#include <fathom/number.h>

#include <inttypes.h>
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
static const char *const formats[GS_PLY_CODINGS] = {"binary_little_endian 1.0",
                                                    "binary_big_endian 1.0", "ascii 1.0"};

typedef struct header {
    gs_ply *ply;
    char line[LINE];
    uint64_t from; /* where the line begins */
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
            h->ply->line++;
            return FTH_OK;
        }
    }
    h->line[LINE - 1] = '\0';
    return bad(h, "a line of the PLY header of at most 255 bytes", err);
}

static fth_status read_format(header *h, const char *format, fth_err *err)
{
    if (h->format) return bad(h, "one format", err); /* offsets of columns follow it */
    for (int i = 0; i < GS_PLY_CODINGS; i++)
        if (strcmp(format, formats[i]) == 0) {
            h->format = true;
            h->ply->coding = (gs_ply_coding)i;
            return FTH_OK;
        }
    return bad(h, "format binary_little_endian, binary_big_endian or ascii 1.0", err);
}

static fth_status read_element(header *h, char *rest, fth_err *err)
{
    gs_ply *p = h->ply;
    char *count = strchr(rest, ' ');
    int64_t rows = 0;
    if (!h->format) return bad(h, "a format before the first element", err);
    if (p->elements == GS_PLY_ELEMENTS) return bad(h, "at most 16 elements", err);
    if (!count || count - rest >= GS_PLY_NAME || !fth_int_parse(count + 1, &rows) || rows < 0)
        return bad(h, "an element with its name and its count", err);
    gs_ply_element *e = &p->element[p->elements++];
    *e = (gs_ply_element){.rows = rows, .first = p->all_columns};
    memcpy(e->name, rest, (size_t)(count - rest));
    return FTH_OK;
}

static fth_status read_property(header *h, char *rest, fth_err *err)
{
    gs_ply *p = h->ply;
    if (p->elements == 0) return bad(h, "an element first", err);
    gs_ply_element *e = &p->element[p->elements - 1];
    if (strncmp(rest, "list ", 5) == 0 && strcmp(e->name, "vertex") != 0) {
        e->lists = true;
        return FTH_OK;
    }
    char *name = strchr(rest, ' ');
    if (!name || strlen(name + 1) >= GS_PLY_NAME || !name[1])
        return bad(h, "a property with a type and a name", err);
    *name++ = '\0';
    for (int t = 0; t < GS_PLY_TYPES; t++) {
        if (strcmp(rest, types[t].name[0]) != 0 && strcmp(rest, types[t].name[1]) != 0) continue;
        if (p->all_columns == GS_PLY_COLUMNS) return bad(h, "at most 512 properties", err);
        gs_ply_column *c = &p->all[p->all_columns++];
        *c = (gs_ply_column){.type = (gs_ply_type)t, .offset = e->stride};
        snprintf(c->name, sizeof c->name, "%s", name);
        e->stride += p->coding == GS_PLY_ASCII ? (uint32_t)sizeof(double) : types[t].bytes;
        e->columns++;
        return FTH_OK;
    }
    return bad(h, "a property of one number, float, double or an integer", err);
}

fth_status gs_ply_read_header(gs_ply *p, fth_err *err)
{
    enum { FORMAT, ELEMENT, PROPERTY, COMMENT, NOTHING };
    static const char *const words[NOTHING] = {"format ", "element ", "property ", "comment"};
    header *h = &(header){.ply = p};
    FTH_TRY(next_line(h, err));
    if (strcmp(h->line, "ply") != 0) return bad(h, "'ply'", err);
    for (int n = 0; n < LINES; n++) {
        FTH_TRY(next_line(h, err));
        if (strcmp(h->line, "end_header") == 0) {
            if (p->elements == 0) return bad(h, "an element before the end of the header", err);
            p->start = p->bytes.at;
            p->start_line = p->line;
            return FTH_OK;
        }
        int kind = FORMAT;
        while (kind < NOTHING && strncmp(h->line, words[kind], strlen(words[kind])) != 0) kind++;
        if (strncmp(h->line, "obj_info", 8) == 0) kind = COMMENT;
        if (kind == NOTHING) return bad(h, "a line of a PLY header", err);
        char *rest = h->line + strlen(words[kind]);
        if (kind == FORMAT) FTH_TRY(read_format(h, rest, err));
        if (kind == ELEMENT) FTH_TRY(read_element(h, rest, err));
        if (kind == PROPERTY) FTH_TRY(read_property(h, rest, err));
    }
    return bad(h, "the end of the header", err);
}
