/* io/nd2.h - Nikon's ND2 container, version 3: chunks, the trees of metadata in them, loops.
 *
 * A file is a row of chunks at multiples of 4096 bytes and a map of them at its end. Frames are
 * chunks "ImageDataSeq|N"; metadata are trees of named values ("LV"). The map is kept as the text
 * it is in the file, also when it had to be made anew by scanning: one parser serves both.
 */
#ifndef FTH_IO_ND2_H
#define FTH_IO_ND2_H

#include "base/str.h"
#include "io/file.h"
#include "io/images.h"

#include <fathom/nd2.h>
#include <sys/uio.h>

enum {
    FTH__ND2_PAGE = 4096,       /* chunks start at multiples of it */
    FTH__ND2_HEAD = 16,         /* magic, bytes of the name, bytes of the data */
    FTH__ND2_FRAME_NAME = 4072, /* of a frame: with head and time, pixels start at a page */
    FTH__ND2_PREFIX = 8,        /* of a frame's data: its time */
    FTH__ND2_TRAILER = 40,
    FTH__ND2_DEPTH = 64 /* of a tree; experiments nest three loops. Bounds the recursion */
};
_Static_assert(FTH__ND2_HEAD + FTH__ND2_FRAME_NAME + FTH__ND2_PREFIX == FTH__ND2_PAGE,
               "the pixels of a frame start at a page");
#define FTH__ND2_MAGIC 0x0ABECEDAu
#define FTH__ND2_SIGNATURE "ND2 FILE SIGNATURE CHUNK NAME01!"
#define FTH__ND2_MAP_NAME "ND2 FILEMAP SIGNATURE NAME 0001!"
#define FTH__ND2_MAP_END "ND2 CHUNK MAP SIGNATURE 0000001!"

/* ---- chunks (nd2_chunks.c) ---- */

typedef struct fth__nd2_chunk {
    uint64_t offset; /* of its magic; 0: there is none (the first chunk is the signature) */
    uint64_t bytes;  /* of its data; FTH__ND2_UNKNOWN: as its head says */
} fth__nd2_chunk;
#define FTH__ND2_UNKNOWN (UINT64_MAX >> 1)
#define FTH__ND2_REPAIRED (1ull << 63) /* a bit of the bytes of a frame */

/* The head of a chunk; false when there is none. */
typedef struct fth__nd2_head {
    uint64_t data;  /* where the data begin */
    uint64_t bytes; /* of the data */
    char name[64];  /* without '!'; cut */
} fth__nd2_head;
fth_status fth__nd2_head_read(fth_file *f, uint64_t offset, fth__nd2_head *out, bool *there,
                              fth_err *err);

typedef struct fth__nd2_map {
    fth_mem *mem;
    char *text; /* entries: name through '!', u64 offset, u64 bytes */
    uint64_t bytes;
    uint64_t room;
} fth__nd2_map;
typedef struct fth__nd2_entry {
    const char *name; /* with its '!' */
    uint64_t name_bytes;
    fth__nd2_chunk chunk;
} fth__nd2_entry;
/* The map that the end of the file leads to, or one within `search` bytes of that place. *found is
 * false when there is none that is whole. What was wrong goes to `damage`. */
fth_status fth__nd2_map_load(fth__nd2_map *m, fth_file *f, uint64_t search, bool *found,
                             fth__text *damage, fth_err *err);
/* Frames that need not be looked for, by offset: each ends within the file. */
typedef struct fth__nd2_known {
    fth__nd2_chunk *frame;
    int64_t n;
} fth__nd2_known;
/* A map of the chunks that are found by going through the file, less those that are known (NULL:
 * none); a known frame is stepped over without a look. */
fth_status fth__nd2_map_scan(fth__nd2_map *m, fth_file *f, const fth__nd2_known *known,
                             fth_err *err);
/* An entry more; the name has no '!'. */
fth_status fth__nd2_map_add(fth__nd2_map *m, const char *name, fth__nd2_chunk chunk, fth_err *err);
/* The entry at *at, which moves on; false at the end. */
bool fth__nd2_map_next(const fth__nd2_map *m, uint64_t *at, fth__nd2_entry *out);
void fth__nd2_map_clear(fth__nd2_map *m); /* also of a zeroed one */
/* N of "ImageDataSeq|N!"; -1 for other chunks. */
int64_t fth__nd2_frame_number(const fth__nd2_entry *e);

/* ---- trees (nd2_lv.c) ---- */

/* A level: items that are still to come. Lengths are never believed beyond the level around. */
typedef struct fth__lv {
    const uint8_t *at, *end;
    int64_t left;
} fth__lv;
typedef enum fth__lv_type {
    FTH__LV_BOOL = 1,
    FTH__LV_I32,
    FTH__LV_U32,
    FTH__LV_I64,
    FTH__LV_U64,
    FTH__LV_F64,
    FTH__LV_POINTER,
    FTH__LV_TEXT,
    FTH__LV_BYTES,
    FTH__LV_LEVEL = 11,
    FTH__LV_PACKED = 76
} fth__lv_type;
typedef struct fth__lv_item {
    fth__lv_type type;
    const uint8_t *name; /* UTF-16 */
    int units;           /* of the name, without its end */
    const uint8_t *value;
    uint64_t bytes; /* of a text without its end */
    int64_t count;  /* items of a level */
} fth__lv_item;
fth__lv fth__lv_root(const void *data, uint64_t bytes);
/* False at the end of the level, and where what follows does not fit into it. */
bool fth__lv_next(fth__lv *level, fth__lv_item *out);
/* The items of a level; an empty one for anything else. */
fth__lv fth__lv_inside(const fth__lv_item *item);
bool fth__lv_is_named(const fth__lv_item *item, const char *name); /* ASCII */
/* "sPicturePlanes/uiCount", from a level down; the first of that name. */
bool fth__lv_find(fth__lv level, const char *path, fth__lv_item *out);
fth__lv fth__lv_level(fth__lv level, const char *path);
/* A number or a bool; `otherwise` when there is none. */
double fth__lv_f64(fth__lv level, const char *path, double otherwise);
int64_t fth__lv_i64(fth__lv level, const char *path, int64_t otherwise);
double fth__lv_number(const fth__lv_item *item, double otherwise);
/* UTF-8 on the heap, with '?' for what could steer a terminal; NULL: no memory. "" where there is
 * no text. */
char *fth__lv_text(fth__lv level, const char *path, fth_mem *mem);
/* The data of a chunk as a tree: read, and inflated when it is packed. *block holds it and is given
 * back with fth__heap_free. FTH_E_FILE_FORMAT when there is no chunk at its place. */
fth_status fth__lv_read(fth__lv *out, void **block, fth_file *f, const fth__nd2_chunk *chunk,
                        const char *name, fth_err *err);

/* A tree that grows; the first failure is kept, and nothing is written after it. */
typedef struct fth__lv_writer {
    fth_mem *mem;
    uint8_t *data; /* given back by fth__lv_writer_clear */
    int64_t bytes, room;
    int64_t start[12]; /* of the levels that are open */
    int depth;
    fth_status status;
    fth_err *err;
} fth__lv_writer;
/* "" names an element of a list. */
void fth__lv_open(fth__lv_writer *w, const char *name);
void fth__lv_close(fth__lv_writer *w);
void fth__lv_put_bool(fth__lv_writer *w, const char *name, bool v);
void fth__lv_put_i32(fth__lv_writer *w, const char *name, int64_t v);
void fth__lv_put_u32(fth__lv_writer *w, const char *name, int64_t v);
void fth__lv_put_f64(fth__lv_writer *w, const char *name, double v);
void fth__lv_put_text(fth__lv_writer *w, const char *name, const char *utf8);
void fth__lv_put_ones(fth__lv_writer *w, const char *name, int64_t n); /* n bytes of 1 */
void fth__lv_writer_clear(fth__lv_writer *w);

/* ---- loops (nd2_loops.c) ---- */

typedef struct fth__nd2_point {
    char *name;
    double x, y, z;
} fth__nd2_point;
typedef struct fth__nd2_loop {
    int axis; /* FTH_IMAGES_T, _P, _Z */
    int level;
    int64_t count;
} fth__nd2_loop;
typedef struct fth__nd2_loops {
    fth_mem *mem;
    fth__nd2_loop loop[3]; /* outermost first */
    int n;
    double period_ms; /* 0: not said */
    double z_step;
    int64_t z_home; /* plane where the stage stood */
    bool use_z;     /* points have a z of their own */
    fth__nd2_point *point;
    int64_t n_points, room;
} fth__nd2_loops;
/* `experiment` is SLxExperiment. */
fth_status fth__nd2_loops_read(fth__nd2_loops *l, fth_mem *mem, fth__lv experiment,
                               const char *path, fth_err *err);
void fth__nd2_loops_clear(fth__nd2_loops *l);

/* ---- metadata (nd2_meta.c) ---- */

typedef enum fth__nd2_part {
    FTH__ND2_ATTRIBUTES,
    FTH__ND2_EXPERIMENT,
    FTH__ND2_PICTURE,
    FTH__ND2_TEXT,
    FTH__ND2_TIMES,
    FTH__ND2_X,
    FTH__ND2_Y,
    FTH__ND2_Z,
    FTH__ND2_PARTS
} fth__nd2_part;
const char *fth__nd2_part_name(fth__nd2_part part); /* with its '!' */

typedef struct fth__nd2_meta {
    fth_mem *mem;
    int64_t width, height, components, sequences;
    uint64_t row_bytes; /* padding included */
    int bits, significant;
    bool packed; /* frames are zlib streams */
    bool rgb;
    double um_per_px, magnification, julian_day, x, y, z;
    char *objective, *description;
    char **channel;
    int64_t n_channels;
} fth__nd2_meta;
fth_status fth__nd2_attributes_read(fth__nd2_meta *m, fth__lv root, const char *path, fth_err *err);
/* Both may be empty levels. */
fth_status fth__nd2_picture_read(fth__nd2_meta *m, fth__lv picture, fth__lv text, fth_err *err);
void fth__nd2_meta_clear(fth__nd2_meta *m);

/* ---- an open file (nd2.c), its pixels (nd2_frame.c) ---- */

typedef struct fth__nd2 {
    fth_images images;
    fth_mem *mem;
    atomic_int refs; /* the images, and each source */
    fth_file *file;
    fth__nd2_chunk part[FTH__ND2_PARTS];
    fth__nd2_chunk *frame; /* by number; offset 0: missing */
    int64_t n_frames;
    int64_t stride[3]; /* of t, p, z, in frame numbers */
    fth__nd2_loops loops;
    fth__nd2_meta meta;
    bool swap_rgb;
    fth_read_mode read_mode;
    int direct_fd; /* -1: none */
    char axes[8];
    char damage[1000];
} fth__nd2;
void fth__nd2_release(fth__nd2 *nd2);

/* What the file says of its chunks, and what a scan found where that was not enough (nd2_index.c).
 */
typedef struct fth__nd2_maps {
    fth__nd2_map said, found;
    bool scanned;
    bool trusted; /* frames of `said` were stepped over in the scan */
} fth__nd2_maps;
/* Fill in `part`; what was wrong goes to `damage`. Maps are the caller's to clear. */
fth_status fth__nd2_find_parts(fth__nd2 *nd2, fth__nd2_maps *m, uint64_t search, fth__text *damage,
                               fth_err *err);
/* Fill in `frame`, for n_frames that the metadata promise, and the counts of `info`. */
fth_status fth__nd2_find_frames(fth__nd2 *nd2, fth__nd2_maps *m, fth__text *damage, fth_err *err);
/* nd2_read.c: as many bytes as `parts` have, from one place of the file; parts are used up. */
fth_status fth__nd2_read(const fth__nd2 *nd2, uint64_t at, struct iovec *parts, int n,
                         fth_err *err);
fth_status fth__nd2_open_direct(fth__nd2 *nd2, fth_err *err);
fth_status fth__nd2_source(fth_images *images, fth_source *out, fth_err *err);

extern const fth__images_format fth__nd2_format;

/* ---- writing (nd2_write.c, nd2_write_meta.c) ---- */

/* The tree of a part of the metadata: attributes, experiment, picture or text. */
void fth__nd2_put_part(fth__lv_writer *w, fth__nd2_part part, const fth_nd2_options *options);
/* Bytes of a row, its padding included. */
uint64_t fth__nd2_row_bytes(const fth_nd2_options *options);
/* As fth_nd2_write, with a head only for frames whose number is a multiple of `heads`, and the
 * last: tests make maps of many frames without a page for each. */
fth_status fth__nd2_write(fth_mem *mem, const char *path, const fth_nd2_options *options,
                          fth_nd2_draw *draw, void *user, int64_t heads, fth_err *err);

#endif
