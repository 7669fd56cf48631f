/* ply.h - PLY files of points: the header, and rows of its elements as numbers.
 *
 * Binary of either order of bytes, and ASCII. An element has properties of one number each in any
 * order; elements with lists are skipped when they follow the ones that are read, and in ASCII
 * anywhere. A file is opened at its element "vertex".
 */
#ifndef SPLAT_FILE_PLY_H
#define SPLAT_FILE_PLY_H

#include "bytes.h"

enum { GS_PLY_COLUMNS = 512, GS_PLY_ELEMENTS = 16, GS_PLY_NAME = 48, GS_PLY_WHERE = FTH_PATH + 40 };

typedef enum gs_ply_type {
    GS_PLY_I8,
    GS_PLY_U8,
    GS_PLY_I16,
    GS_PLY_U16,
    GS_PLY_I32,
    GS_PLY_U32,
    GS_PLY_F32,
    GS_PLY_F64,
    GS_PLY_TYPES
} gs_ply_type;
typedef struct gs_ply_column {
    char name[GS_PLY_NAME];
    gs_ply_type type; /* as the header says; numbers of ASCII are kept as f64 */
    uint32_t offset;  /* in a row */
} gs_ply_column;
typedef struct gs_ply_element {
    char name[GS_PLY_NAME];
    int64_t rows;
    int first, columns; /* of all columns */
    uint32_t stride;    /* bytes of a row as it is kept */
    bool lists;         /* rows have no fixed length */
} gs_ply_element;
typedef enum gs_ply_coding {
    GS_PLY_LITTLE,
    GS_PLY_BIG,
    GS_PLY_ASCII,
    GS_PLY_CODINGS
} gs_ply_coding;

typedef struct gs_ply {
    gs_bytes bytes;
    gs_ply_coding coding;
    gs_ply_element element[GS_PLY_ELEMENTS];
    int elements;
    gs_ply_column *all; /* columns of all elements */
    int all_columns;
    uint64_t start;           /* first byte behind the header */
    int64_t start_line, line; /* lines that were read, from 1 */
    /* the element whose rows are read */
    int64_t rows;
    uint32_t stride;
    int columns;
    const gs_ply_column *column;
    uint8_t *row;
} gs_ply;

fth_status gs_ply_open(gs_ply *p, fth_mem *mem, const char *path, fth_err *err);
void gs_ply_close(gs_ply *p); /* a cleared one is allowed */
/* NULL: there is none. */
const gs_ply_element *gs_ply_element_named(const gs_ply *p, const char *name);
/* Its rows from the first on. */
fth_status gs_ply_enter(gs_ply *p, const gs_ply_element *e, fth_err *err);
/* A column of the element; -1: there is none. */
int gs_ply_find(const gs_ply *p, const char *name);
int gs_ply_numbered(const gs_ply *p, const char *stem, int i); /* "stem<i>" */
/* The next row into p->row. */
fth_status gs_ply_next(gs_ply *p, fth_err *err);
double gs_ply_real(const gs_ply *p, int column);
/* Where the row is: "x.ply, byte 300" or "x.ply:12". */
const char *gs_ply_where(const gs_ply *p, char text[GS_PLY_WHERE]);

/* ply_header.c: up to p->start. */
fth_status gs_ply_read_header(gs_ply *p, fth_err *err);

/* All rows as points with colours: x y z, and red green blue from 0 to 255 (or 0 to 1 as floats);
 * white where there are none. */
fth_status gs_ply_points(gs_ply *p, float (*point)[3], uint8_t (*colour)[3], fth_err *err);

#endif
