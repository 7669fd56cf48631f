/* fathom/files.h - paths, folders, files in place, files written together, arrays on the disk.
 *
 * What an instrument does with the disk goes through here: every error names the path, short reads
 * and writes are seen to, and each call that changes the disk counts as a write of the fth_mem it
 * is given, so a test can make every one of them fail. Formats are in fathom/io.h.
 *
 *   char path[FTH_PATH];
 *   FTH_TRY(fth_path_join(path, call->model_dir, "table.csv", err));
 *   FTH_TRY(fth_file_save(mem, path, text, strlen(text), err));
 *
 * Ownership: what a create or an open returns belongs to the caller until its close or destroy.
 * Threads:   one fth_file may be read and written by several threads; all else by one at a time.
 * Failure:   on failure *out is NULL, no temporary file is left, and the old content stays.
 */
#ifndef FATHOM_FILES_H
#define FATHOM_FILES_H

#include <fathom/array.h>
#include <fathom/io.h>

FTH_BEGIN_DECLS

/* ---- paths ---- */

enum { FTH_PATH = 4096 }; /* bytes of a path, its end included: the most that Linux takes */

/* "DIR/NAME"; FTH_E_FILE_OPEN when it is too long. `path` must be none of the others. */
FTH_API FTH_MUST_USE fth_status fth_path_join(char path[FTH_PATH], const char *dir,
                                              const char *name, fth_err *err);
/* "PATH.ENDING": a name beside another. */
FTH_API FTH_MUST_USE fth_status fth_path_beside(char path[FTH_PATH], const char *of,
                                                const char *ending, fth_err *err);
/* The folder that holds it: "." of a name alone, "/" of "/name". */
FTH_API FTH_MUST_USE fth_status fth_path_parent(char path[FTH_PATH], const char *of, fth_err *err);
/* What is behind the last slash: a part of `path`. */
FTH_API const char *fth_path_name(const char *path);

typedef enum fth_path_kind {
    FTH_PATH_ABSENT, /* also what may not be looked at */
    FTH_PATH_FILE,
    FTH_PATH_FOLDER,
    FTH_PATH_DEVICE, /* of characters, as /dev/null: a rename must not take its place */
    FTH_PATH_SPECIAL /* a pipe, a socket, a disk */
} fth_path_kind;
typedef struct fth_path_info {
    fth_path_kind kind;
    uint64_t bytes;
    int64_t mtime_ns; /* since 1970 */
} fth_path_info;
/* Links are followed. */
FTH_API fth_path_kind fth_path_kind_of(const char *path);
/* FTH_E_FILE_OPEN with the reason when there is nothing. */
FTH_API FTH_MUST_USE fth_status fth_path_stat(const char *path, fth_path_info *out, fth_err *err);
FTH_API bool fth_path_exists(const char *path);
FTH_API bool fth_path_is_readable(const char *path);
/* May it be written, or where there is nothing, made? */
FTH_API bool fth_path_is_writable(const char *path);
typedef struct fth_path_disk_info {
    uint64_t free_bytes; /* that this user may still write */
    uint64_t id;         /* tells file systems apart */
} fth_path_disk_info;
/* The file system of a path, or where there is nothing yet, of the nearest folder above it. */
FTH_API FTH_MUST_USE fth_status fth_path_disk(const char *path, fth_path_disk_info *out,
                                              fth_err *err);
/* A finished file gets another name, and its folder is synced; what has that name is replaced. */
FTH_API FTH_MUST_USE fth_status fth_path_rename(fth_mem *mem, const char *from, const char *to,
                                                fth_err *err);
/* A file; that there is none is no failure. */
FTH_API fth_status fth_path_remove(fth_mem *mem, const char *path, fth_err *err);

/* ---- folders ---- */

/* One folder in a folder that exists; that it is there already is no failure. */
FTH_API FTH_MUST_USE fth_status fth_folder_make(fth_mem *mem, const char *path, fth_err *err);
/* And those above it. */
FTH_API FTH_MUST_USE fth_status fth_folder_make_all(fth_mem *mem, const char *path, fth_err *err);
/* Names of all entries but "." and "..", in the order of their bytes. */
FTH_API FTH_MUST_USE fth_status fth_folder_list(fth_texts **out, fth_mem *mem, const char *path,
                                                fth_err *err);
/* A folder of our own with all that is in it; links are removed, not followed. That there is none
 * is no failure. */
FTH_API fth_status fth_folder_remove(fth_mem *mem, const char *path, fth_err *err);
/* Put the finished folder `made` in the place of `path`. A folder there is moved to "PATH.old" for
 * that instant, back when it fails, and removed when not. */
FTH_API FTH_MUST_USE fth_status fth_folder_replace(fth_mem *mem, const char *path, const char *made,
                                                   fth_err *err);

/* ---- small files, whole ---- */

/* Temporary file, sync, rename. */
FTH_API FTH_MUST_USE fth_status fth_file_save(fth_mem *mem, const char *path, const void *data,
                                              uint64_t bytes, fth_err *err);
/* At most `most` bytes, more are FTH_E_FILE_FORMAT; a 0 stands behind them. Give *data back with
 * fth_mem_release. */
FTH_API FTH_MUST_USE fth_status fth_file_load(fth_mem *mem, const char *path, uint64_t most,
                                              char **data, uint64_t *bytes, fth_err *err);
/* In one call at the end of a log, which is made when there is none: lines of several processes do
 * not mix. */
FTH_API FTH_MUST_USE fth_status fth_file_append(fth_mem *mem, const char *path, const void *data,
                                                uint64_t bytes, fth_err *err);

/* ---- a text too long for memory, whole or not at all ---- */

typedef struct fth_file_stream fth_file_stream;
FTH_API FTH_MUST_USE fth_status fth_file_stream_create(fth_file_stream **out, fth_mem *mem,
                                                       const char *path, fth_err *err);
/* For fprintf, fth_json_begin_file, and fseek from the front; it ends with the stream. */
FTH_API FILE *fth_file_stream_file(fth_file_stream *s);
/* Fails with the first failed write, whenever it was. Ends the stream either way. */
FTH_API FTH_MUST_USE fth_status fth_file_stream_commit(fth_file_stream *s, fth_err *err);
FTH_API void fth_file_stream_abandon(fth_file_stream *s); /* NULL is allowed */

/* ---- files in place ---- */

typedef struct fth_file fth_file;
/* To read. Only regular files: a size must mean something. */
FTH_API FTH_MUST_USE fth_status fth_file_open(fth_file **out, fth_mem *mem, const char *path,
                                              fth_err *err);
/* To read and to change in place, made when there is none. What is written is there at once, whole
 * or not: the caller keeps a state that can be resumed from. */
FTH_API FTH_MUST_USE fth_status fth_file_open_update(fth_file **out, fth_mem *mem, const char *path,
                                                     fth_err *err);
/* A file in `dir` without a name: it is gone with the process, however that ends. `what` names it
 * in errors. */
FTH_API FTH_MUST_USE fth_status fth_file_open_scratch(fth_file **out, fth_mem *mem, const char *dir,
                                                      const char *what, fth_err *err);
FTH_API void fth_file_close(fth_file *f); /* NULL is allowed */
/* Exactly `bytes` from `offset`, else FTH_E_FILE_SHORT; `what` names them in errors. */
FTH_API FTH_MUST_USE fth_status fth_file_read(fth_file *f, uint64_t offset, uint64_t bytes,
                                              void *dst, const char *what, fth_err *err);
FTH_API FTH_MUST_USE fth_status fth_file_write(fth_file *f, uint64_t offset, uint64_t bytes,
                                               const void *src, const char *what, fth_err *err);
FTH_API uint64_t fth_file_bytes(const fth_file *f);
/* It ends here; bytes never written are zero. */
FTH_API FTH_MUST_USE fth_status fth_file_resize(fth_file *f, uint64_t bytes, fth_err *err);
/* When this returns, what was written is on the disk. */
FTH_API FTH_MUST_USE fth_status fth_file_sync(fth_file *f, fth_err *err);

/* ---- files that appear together ---- */

typedef struct fth_file_set fth_file_set;
FTH_API FTH_MUST_USE fth_status fth_file_set_create(fth_file_set **out, fth_mem *mem, fth_err *err);
/* A file of the set: write it, in whatever format, under *temp, a hidden name beside `path` that is
 * valid until the set ends. It may be read back from there. */
FTH_API FTH_MUST_USE fth_status fth_file_set_add(fth_file_set *set, const char *path,
                                                 const char **temp, fth_err *err);
/* Sync all, then rename all; when one fails, those before it get their old content back. */
FTH_API FTH_MUST_USE fth_status fth_file_set_commit(fth_file_set *set, fth_err *err);
/* Removes what was not committed. NULL is allowed. */
FTH_API void fth_file_set_destroy(fth_file_set *set);

/* ---- what killed processes leave behind ---- */

/* Says that temporary files of this process in a folder are in use, until it is released or the
 * process ends, however that is: a hidden file there that is locked. */
typedef struct fth_hold fth_hold;
FTH_API FTH_MUST_USE fth_status fth_hold_create(fth_hold **out, fth_mem *mem, const char *folder,
                                                fth_err *err);
FTH_API void fth_hold_release(fth_hold *hold); /* NULL is allowed */
/* Remove temporary files and folders beside `path` that were made to become it and that no process
 * needs any more, and say how many. Those of a process that holds the folder, on any machine, or
 * that has the number in their name and lives here, stay. */
FTH_API FTH_MUST_USE fth_status fth_remains_remove(fth_mem *mem, const char *path, int64_t *count,
                                                   fth_err *err);

/* ---- arrays on the disk, in the place of memory ---- */

typedef struct fth_scratch fth_scratch;
/* In a file without a name in `dir`, often fth_context_scratch_dir. Elements never written are
 * zero. With NULL for `dir` there is no file: source and sink have the shape alone, for plans. */
FTH_API FTH_MUST_USE fth_status fth_scratch_create(fth_scratch **out, fth_mem *mem, const char *dir,
                                                   const char *what, fth_dtype dtype, int n_axes,
                                                   const int64_t *size, fth_err *err);
FTH_API void fth_scratch_destroy(fth_scratch *a); /* NULL is allowed */
FTH_API uint64_t fth_scratch_bytes(const fth_scratch *a);
/* Both are good until the array is destroyed, and need no close. */
FTH_API fth_source fth_scratch_source(fth_scratch *a);
FTH_API fth_sink fth_scratch_sink(fth_scratch *a);

FTH_END_DECLS
#endif /* FATHOM_FILES_H */
