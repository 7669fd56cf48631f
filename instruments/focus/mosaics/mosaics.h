/* mosaics.h - the tiles of every well and time become one image: places, brightness, canvas.
 *
 *   fo_mosaics m = {.ctx = ctx, .how = how, .names = names, .n = n};
 *   FTH_TRY(fo_mosaics_open(&m, err));              lists existing files, counts memory
 *   s = fo_mosaics_run(&m, err);
 *   fo_mosaics_close(&m);
 *
 * Tiles are read from their files, so a resumed run gives the same bytes. First a sample of mosaics
 * gives the median positions of tiles (master_params.json); a mosaic that cannot be aligned uses
 * those. stitch.csv has the position of every tile.
 */
#ifndef FOCUS_MOSAICS_MOSAICS_H
#define FOCUS_MOSAICS_MOSAICS_H

#include "../output/room.h"
#include "../output/tables.h"
#include "bench.h"

#include <fathom/instrument.h>

#include <pthread.h>

/* Which files are what. */
typedef struct fo_mosaic_names {
    int (*tiles)(void *user, int64_t mosaic); /* of it, with holes */
    /* The file of a tile; "" : a hole. */
    fth_status (*tile)(void *user, int64_t mosaic, int tile, char path[FTH_PATH], fth_err *err);
    fth_status (*image)(void *user, int64_t mosaic, char path[FTH_PATH], fth_err *err);
    /* Whose well and time it is, and its name: "A01_t0003". */
    void (*label)(void *user, int64_t mosaic, int *well, int64_t *t, char *name, size_t bytes);
    /* Planes put together as well; NULL: not wanted. */
    fth_status (*stack)(void *user, int64_t mosaic, char path[FTH_PATH], fth_err *err);
    /* One plane of a tile, from 0, as bytes; y * x reals. */
    fth_status (*plane)(void *user, int64_t mosaic, int tile, int64_t z, float *to, fth_err *err);
    int64_t planes;
    void *user;
} fo_mosaic_names;

typedef struct fo_mosaic {
    int tiles;
    uint8_t state;   /* fo_state */
    bool known;      /* its positions are those of stitch.csv, or will be */
    bool sampled;    /* it was aligned, and its positions are the result */
    int64_t place;   /* of its first tile, in `place` */
    int64_t failure; /* number of a text; -1: none */
} fo_mosaic;

typedef struct fo_mosaics {
    fth_context *ctx;
    const fth_stage_call *stage; /* NULL: a command */
    fo_mosaic_how how;           /* most_tiles is found */
    fo_mosaic_names names;
    int64_t n;
    const char *master, *table; /* master_params.json, stitch.csv */
    bool again;                 /* make all again */
    bool none;                  /* make none */
    /* Its own: */
    fo_mosaic *mosaic; /* [n] */
    fo_tile_place *place;
    int64_t n_places;
    fo_tile_place *usual; /* [most_tiles]: the master's */
    uint64_t bench_bytes; /* of one workbench */
    int benches;
    fth_texts *failures;
    fth_mem *mem;
    double seconds; /* that it took */
    uint64_t planned_bytes, peak_bytes;
} fo_mosaics;

fth_status fo_mosaics_open(fo_mosaics *m, fth_err *err);
void fo_mosaics_close(fo_mosaics *m); /* one that was not opened is allowed */
int64_t fo_mosaics_count(const fo_mosaics *m, fo_state state);
/* FTH_E_NO_FIT when not even one workbench fits the budget; *bytes of the ledger while it runs. */
fth_status fo_mosaics_plan(fo_mosaics *m, uint64_t *bytes, fth_err *err);
/* Files that are still to write go to `room`. */
fth_status fo_mosaics_room(const fo_mosaics *m, fo_room *room, fth_err *err);
/* FTH_E_JOB_FAILED when some tiles could not be read; the others are there. */
fth_status fo_mosaics_run(fo_mosaics *m, fth_err *err);

/* places.c: reads stitch.csv for existing mosaics; writes it. */
fth_status fo_mosaics_load_places(fo_mosaics *m, fth_err *err);
fth_status fo_mosaics_save_places(const fo_mosaics *m, fth_err *err);
/* places.c: replaces positions that could not be aligned by the median ones. */
void fo_mosaics_settle(const fo_mosaics *m, int64_t i);
/* places.c: reads the median positions, or computes them from the sampled mosaics. */
bool fo_mosaics_has_master(const fo_mosaics *m);
fth_status fo_mosaics_load_master(fo_mosaics *m, fth_err *err);
fth_status fo_mosaics_make_master(fo_mosaics *m, fth_err *err);
/* planes.c: the z-stack of a mosaic. */
fth_status fo_mosaics_save_stack(const fo_mosaics *m, fo_bench *b, int64_t i, fth_err *err);

#endif
