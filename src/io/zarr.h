/* io/zarr.h - a Zarr array as its metadata describe it, and the rooms that chunks pass through.
 *
 * Version 2 and 3 become one description: a grid of files, each a chunk or a shard of chunks, and
 * how the elements of a chunk lie and are packed. It holds no memory but its path; a room is what
 * one thread needs to read a chunk, and a pool of them serves one array or all those of a plate.
 */
#ifndef FTH_IO_ZARR_H
#define FTH_IO_ZARR_H

#include <fathom/zarr.h>

#include "io/codecs.h"
#include "io/file.h"

#include <pthread.h>

/* ---- the description ---- */

enum {
    FTH__ZARR_NAME = 40,     /* bytes of an axis' name; longer ones are cut */
    FTH__ZARR_FILL = 16,     /* of the largest element */
    FTH__ZARR_DOC = 4 << 20, /* of a metadata file: plates of 1536 wells have some 100 KiB */
};

typedef struct fth__zarr_meta {
    int format;
    fth_dtype dtype;
    bool is_u64;    /* read as i64; a number from 2^63 on is an error */
    bool text;      /* elements are strings, and `dtype` means nothing */
    int characters; /* of each string, 4 bytes each; 0: strings of any length */
    int n_axes;
    int64_t size[FTH_MAX_AXES];
    int64_t chunk[FTH_MAX_AXES]; /* unpacked at once */
    int64_t file[FTH_MAX_AXES];  /* elements of a file: a multiple of `chunk` */
    bool sharded;
    bool index_first, index_sum; /* of shards */
    int order[FTH_MAX_AXES];     /* axes of a stored chunk, outermost first */
    bool swap;                   /* big-endian */
    fth__codecs codecs;
    char separator;
    bool prefix;                  /* "c/0/1" and not "0/1" */
    uint8_t fill[FTH__ZARR_FILL]; /* an element */
    char axis[FTH_MAX_AXES][FTH__ZARR_NAME];
} fth__zarr_meta;

/* From the text of .zarray or zarr.json, whose version is in it; `label` names it in messages. */
fth_status fth__zarr_meta_take(fth__zarr_meta *m, const fth_json_value *doc, const char *label,
                               fth_err *err);
/* Elements and bytes of a chunk, chunks of a file. */
int64_t fth__zarr_chunk_elements(const fth__zarr_meta *m);
uint64_t fth__zarr_chunk_bytes(const fth__zarr_meta *m);
int64_t fth__zarr_per_file(const fth__zarr_meta *m);
/* A chunk lies in its file as in memory: not packed, not turned, of our byte order. */
bool fth__zarr_is_straight(const fth__zarr_meta *m);
/* Files of the grid along an axis. */
int64_t fth__zarr_files(const fth__zarr_meta *m, int axis);
/* "FOLDER/c/0/1": the file at an index of the grid. */
fth_status fth__zarr_file_path(const fth__zarr_meta *m, const char *folder, const int64_t *index,
                               char path[FTH_PATH], fth_err *err);

/* What kind of Zarr node a folder is, by the file that says so. */
typedef enum fth__zarr_node {
    FTH__ZARR_NONE,
    FTH__ZARR_V2_ARRAY, /* .zarray */
    FTH__ZARR_V2_GROUP, /* .zgroup, or .zattrs alone */
    FTH__ZARR_V3        /* zarr.json; which it is stands inside */
} fth__zarr_node;
fth__zarr_node fth__zarr_node_of(const char *folder);
/* A JSON file of a folder, at most FTH__ZARR_DOC bytes. */
fth_status fth__zarr_doc(fth_json **out, fth_mem *mem, const char *folder, const char *name,
                         fth_err *err);
/* As fth__zarr_load, also of u64 and of strings. */
fth_status fth__zarr_load_any(fth__zarr_meta *m, fth_mem *mem, const char *folder, fth_json **doc,
                              fth_json **attributes, fth_err *err);
/* Where `m` describes the array in `folder`; *attributes (may be NULL) is its own document in
 * version 2 (NULL: none) and *doc in version 3. */
fth_status fth__zarr_load(fth__zarr_meta *m, fth_mem *mem, const char *folder, fth_json **doc,
                          fth_json **attributes, fth_err *err);

/* ---- rooms ---- */

/* What one thread needs to read or write a chunk; zero parts are not needed. */
typedef struct fth__zarr_needs {
    uint64_t chunk, packed, again, work, index; /* `again`: where codecs follow each other */
    bool deflate;                               /* something is unpacked by zlib or gzip */
} fth__zarr_needs;
void fth__zarr_needs_add(fth__zarr_needs *all, const fth__zarr_meta *m, bool pack);

typedef struct fth__zarr_room {
    uint8_t *chunk, *one, *two, *work, *index;
    uint64_t chunk_bytes, work_bytes;
    fth__unpacker *unpacker; /* NULL: not needed, or no memory for it */
    bool busy;
} fth__zarr_room;
enum { FTH__ZARR_ROOMS = 8 }; /* as FTH__ROOMS */
typedef struct fth__zarr_rooms {
    fth_mem *mem;
    void *block;
    uint64_t bytes; /* billed */
    int n, free;
    fth__zarr_room room[FTH__ZARR_ROOMS];
    pthread_mutex_t lock;
    pthread_cond_t freed;
} fth__zarr_rooms;
fth_status fth__zarr_rooms_open(fth__zarr_rooms *r, fth_mem *mem, const fth__zarr_needs *needs,
                                fth_err *err);
void fth__zarr_rooms_close(fth__zarr_rooms *r); /* zeroed is allowed */
/* Waits until one is free. */
fth__zarr_room *fth__zarr_room_take(fth__zarr_rooms *r);
void fth__zarr_room_give(fth__zarr_rooms *r, fth__zarr_room *room);

/* ---- chunks ---- */

/* A rectangle of elements between two places, in steps of bytes along each axis. */
void fth__zarr_move(int n_axes, const int64_t *n, uint64_t item, void *to, const int64_t *to_step,
                    const void *from, const int64_t *from_step);
/* Steps of bytes of a dense row-major box, and of a stored chunk. */
void fth__zarr_steps(int n_axes, const int64_t *n, uint64_t item, int64_t *step);
void fth__zarr_chunk_steps(const fth__zarr_meta *m, int64_t *step);

/* Read [lo, lo+n), which lies inside, to elements `step` bytes apart. */
fth_status fth__zarr_read(const fth__zarr_meta *m, const char *folder, fth__zarr_rooms *rooms,
                          const int64_t *lo, const int64_t *n, void *dst, const int64_t *step,
                          fth_err *err);

/* The index of a shard: offset and length of each chunk, both 2^64-1 where there is none. */
uint64_t fth__zarr_index_bytes(const fth__zarr_meta *m); /* with its sum */
/* Checks the sum, and every place against the bytes of the file. */
fth_status fth__zarr_index_check(const fth__zarr_meta *m, const uint8_t *index, uint64_t file_bytes,
                                 const char *label, fth_err *err);
void fth__zarr_index_get(const uint8_t *index, int64_t i, uint64_t *offset, uint64_t *bytes);

/* ---- writing ---- */

/* Description of an array to be written; FTH_E_USAGE names what makes no sense. */
fth_status fth__zarr_meta_make(fth__zarr_meta *m, const fth_zarr_array *array, fth_err *err);
/* Write zarr.json or .zarray into the folder. */
fth_status fth__zarr_meta_save(const fth__zarr_meta *m, fth_mem *mem, const char *folder,
                               fth_err *err);
const char *fth__zarr_dtype_name(fth_dtype dtype, int format); /* "" where there is none */

/* A folder under a hidden name beside its place, until the commit. */
typedef struct fth__zarr_folder {
    fth_mem *mem;
    char path[FTH_PATH], temp[FTH_PATH];
} fth__zarr_folder;
/* `planned`: whether it could be made is looked at, and nothing is. */
fth_status fth__zarr_folder_open(fth__zarr_folder *f, fth_mem *mem, const char *path, bool planned,
                                 fth_err *err);
/* Sync it and give it its name; ends it either way. */
fth_status fth__zarr_folder_commit(fth__zarr_folder *f, fth_err *err);
void fth__zarr_folder_abandon(fth__zarr_folder *f); /* does nothing after the end */
/* A small file of such a folder, which is synced with it; the second ends and frees the writer. */
fth_status fth__zarr_put(fth_mem *mem, const char *folder, const char *name, const void *data,
                         uint64_t bytes, fth_err *err);
fth_status fth__zarr_put_json(fth_json_writer *w, const char *folder, const char *name,
                              fth_err *err);

/* Chunks on their way into a folder. */
typedef struct fth__zarr_out fth__zarr_out;
/* Makes the folder, and writes the metadata; NULL: neither, for plans. `rooms` belong to the
 * caller.
 */
fth_status fth__zarr_out_open(fth__zarr_out **out, fth_mem *mem, const char *folder,
                              const fth__zarr_meta *m, fth__zarr_rooms *rooms, fth_err *err);
/* Any number of threads, each with a rectangle of its own; the source is dense. */
fth_status fth__zarr_out_write(fth__zarr_out *out, const int64_t *lo, const int64_t *n,
                               const void *src, fth_err *err);
/* FTH_E_STATE unless every element was written. */
fth_status fth__zarr_out_check(const fth__zarr_out *out, fth_err *err);
void fth__zarr_out_close(fth__zarr_out *out); /* NULL is allowed */

/* Step an index through [first, last]; false after the last. */
bool fth__zarr_next(int n_axes, const int64_t *first, const int64_t *last, int64_t *at);

#endif
