/* ply.h - PLY files of points: the header, and rows of the element "vertex" as numbers.
 *
 * Binary little endian, whose first element is "vertex", with properties of one number each in any
 * order. Other elements may follow.
 */
#ifndef SPLAT_FILE_PLY_H
#define SPLAT_FILE_PLY_H

#include "bytes.h"

enum { GS_PLY_COLUMNS = 512, GS_PLY_NAME = 48 };

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
    gs_ply_type type;
    uint32_t offset; /* in a row */
} gs_ply_column;

typedef struct gs_ply {
    gs_bytes bytes; /* behind the header */
    int64_t rows;
    uint32_t stride; /* bytes of a row */
    int columns;
    gs_ply_column *column;
    uint8_t *row;
} gs_ply;

fth_status gs_ply_open(gs_ply *p, fth_mem *mem, const char *path, fth_err *err);
void gs_ply_close(gs_ply *p); /* a cleared one is allowed */
/* -1: there is none. */
int gs_ply_find(const gs_ply *p, const char *name);
/* The next row into p->row. */
fth_status gs_ply_next(gs_ply *p, fth_err *err);
double gs_ply_real(const gs_ply *p, int column);

/* All rows as points with colours: x y z, and red green blue from 0 to 255 (or 0 to 1 as floats);
 * white where there are none. */
fth_status gs_ply_points(gs_ply *p, float (*point)[3], uint8_t (*colour)[3], fth_err *err);

#endif
