/* fathom/files.h - paths, folders, random access, atomic sets of files, arrays on disk.
 *
 * All disk access of an instrument goes through here: every error names the path, short reads and
 * writes are retried, and each call that changes the disk counts as a write of its fth_mem, so that
 * a test can make every one of them fail. Formats are in fathom/io.h.
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

enum { FTH_PATH = 4096 }; /* bytes of a path with its terminator: the limit of Linux */

/* "DIR/NAME"; FTH_E_FILE_OPEN if it is too long. `path` must not alias the other arguments. */
FTH_API FTH_MUST_USE fth_status fth_path_join(char path[FTH_PATH], const char *dir,
                                              const char *name, fth_err *err);
/* "PATH.ENDING". */
FTH_API FTH_MUST_USE fth_status fth_path_beside(char path[FTH_PATH], const char *of,
                                                const char *ending, fth_err *err);
/* The parent folder: "." for a bare name, "/" for "/name". */
FTH_API FTH_MUST_USE fth_status fth_path_parent(char path[FTH_PATH], const char *of, fth_err *err);
/* What follows the last slash: a pointer into `path`. */
FTH_API const char *fth_path_name(const char *path);

typedef enum fth_path_kind {
    FTH_PATH_ABSENT, /* also if access is denied */
    FTH_PATH_FILE,
    FTH_PATH_FOLDER,
    FTH_PATH_DEVICE, /* a character device such as /dev/null: must not be replaced by a rename */
    FTH_PATH_SPECIAL /* a pipe, a socket, a block device */
} fth_path_kind;
typedef struct fth_path_info {
    fth_path_kind kind;
    uint64_t bytes;
    int64_t mtime_ns; /* since 1970 */
} fth_path_info;
/* Follows symbolic links. */
FTH_API fth_path_kind fth_path_kind_of(const char *path);
/* FTH_E_FILE_OPEN with the reason if it cannot be accessed. */
FTH_API FTH_MUST_USE fth_status fth_path_stat(const char *path, fth_path_info *out, fth_err *err);
FTH_API bool fth_path_exists(const char *path);
FTH_API bool fth_path_is_readable(const char *path);
/* Whether it can be written, or created if it does not exist. */
FTH_API bool fth_path_is_writable(const char *path);
typedef struct fth_path_disk_info {
    uint64_t free_bytes; /* available to this user */
    uint64_t id;         /* distinguishes file systems */
} fth_path_disk_info;
/* The file system of a path or, if it does not exist, of the nearest existing parent. */
FTH_API FTH_MUST_USE fth_status fth_path_disk(const char *path, fth_path_disk_info *out,
                                              fth_err *err);
/* Rename a finished file, replacing what has that name, and sync its folder. */
FTH_API FTH_MUST_USE fth_status fth_path_rename(fth_mem *mem, const char *from, const char *to,
                                                fth_err *err);
/* Remove a file; a missing one is not an error. */
FTH_API fth_status fth_path_remove(fth_mem *mem, const char *path, fth_err *err);
/* The same to tidy up, at the end or after a failure, where a failure changes nothing. */
FTH_API void fth_path_discard(fth_mem *mem, const char *path);

/* ---- folders ---- */

/* Create one folder in an existing folder; it is not an error if it exists. */
FTH_API FTH_MUST_USE fth_status fth_folder_make(fth_mem *mem, const char *path, fth_err *err);
/* Also create its parents. */
FTH_API FTH_MUST_USE fth_status fth_folder_make_all(fth_mem *mem, const char *path, fth_err *err);
/* Names of all entries except "." and "..", sorted bytewise. */
FTH_API FTH_MUST_USE fth_status fth_folder_list(fth_texts **out, fth_mem *mem, const char *path,
                                                fth_err *err);
/* Remove a folder recursively; symbolic links are removed, not followed. A missing folder is not an
 * error. */
FTH_API fth_status fth_folder_remove(fth_mem *mem, const char *path, fth_err *err);
/* Replace `path` by the finished folder `made`. An existing folder is first moved to "PATH.old"; it
 * is moved back on failure and removed on success. */
FTH_API FTH_MUST_USE fth_status fth_folder_replace(fth_mem *mem, const char *path, const char *made,
                                                   fth_err *err);

/* ---- small files, whole ---- */

/* Temporary file, sync, rename. */
FTH_API FTH_MUST_USE fth_status fth_file_save(fth_mem *mem, const char *path, const void *data,
                                              uint64_t bytes, fth_err *err);
/* Load at most `most` bytes (more: FTH_E_FILE_FORMAT), followed by a zero byte. Release *data with
 * fth_mem_release. */
FTH_API FTH_MUST_USE fth_status fth_file_load(fth_mem *mem, const char *path, uint64_t most,
                                              char **data, uint64_t *bytes, fth_err *err);
/* Append to a log with a single write, creating it if needed, so that lines of several processes do
 * not interleave. */
FTH_API FTH_MUST_USE fth_status fth_file_append(fth_mem *mem, const char *path, const void *data,
                                                uint64_t bytes, fth_err *err);

/* ---- a stream that is written atomically, for texts too long for memory ---- */

typedef struct fth_file_stream fth_file_stream;
FTH_API FTH_MUST_USE fth_status fth_file_stream_create(fth_file_stream **out, fth_mem *mem,
                                                       const char *path, fth_err *err);
/* For fprintf, fth_json_begin_file, and fseek with SEEK_SET; valid until the stream ends. */
FTH_API FILE *fth_file_stream_file(fth_file_stream *s);
/* Reports the first failed write, whenever it happened. Ends the stream in any case. */
FTH_API FTH_MUST_USE fth_status fth_file_stream_commit(fth_file_stream *s, fth_err *err);
FTH_API void fth_file_stream_abandon(fth_file_stream *s); /* NULL is allowed */

/* ---- random access ---- */

typedef struct fth_file fth_file;
/* For reading. Regular files only, because their size must be known. */
FTH_API FTH_MUST_USE fth_status fth_file_open(fth_file **out, fth_mem *mem, const char *path,
                                              fth_err *err);
/* For reading and updating in place, created if missing. Writes take effect at once and are not
 * atomic: the caller keeps a resumable state. */
FTH_API FTH_MUST_USE fth_status fth_file_open_update(fth_file **out, fth_mem *mem, const char *path,
                                                     fth_err *err);
/* An unlinked file in `dir`, which disappears with the process. `what` names it in errors. */
FTH_API FTH_MUST_USE fth_status fth_file_open_scratch(fth_file **out, fth_mem *mem, const char *dir,
                                                      const char *what, fth_err *err);
FTH_API void fth_file_close(fth_file *f); /* NULL is allowed */
/* Read exactly `bytes` at `offset`, else FTH_E_FILE_SHORT; `what` names them in errors. */
FTH_API FTH_MUST_USE fth_status fth_file_read(fth_file *f, uint64_t offset, uint64_t bytes,
                                              void *dst, const char *what, fth_err *err);
FTH_API FTH_MUST_USE fth_status fth_file_write(fth_file *f, uint64_t offset, uint64_t bytes,
                                               const void *src, const char *what, fth_err *err);
FTH_API uint64_t fth_file_bytes(const fth_file *f);
/* Set the size; bytes never written are zero. */
FTH_API FTH_MUST_USE fth_status fth_file_resize(fth_file *f, uint64_t bytes, fth_err *err);
/* Flush to disk (fsync). */
FTH_API FTH_MUST_USE fth_status fth_file_sync(fth_file *f, fth_err *err);

/* ---- files that appear together ---- */

typedef struct fth_file_set fth_file_set;
FTH_API FTH_MUST_USE fth_status fth_file_set_create(fth_file_set **out, fth_mem *mem, fth_err *err);
/* Add a file: write it, in any format, under *temp, a hidden name in the same folder, valid until
 * the set ends. It may be read back from there. */
FTH_API FTH_MUST_USE fth_status fth_file_set_add(fth_file_set *set, const char *path,
                                                 const char **temp, fth_err *err);
/* Sync all files, then rename them; if one fails, the previous ones get their old content back. */
FTH_API FTH_MUST_USE fth_status fth_file_set_commit(fth_file_set *set, fth_err *err);
/* Remove the files that were not committed. NULL is allowed. */
FTH_API void fth_file_set_destroy(fth_file_set *set);

/* ---- temporary files of crashed processes ---- */

/* Marks this process' temporary files in a folder as in use, by a locked hidden file, until it is
 * released or the process ends for any reason. */
typedef struct fth_hold fth_hold;
FTH_API FTH_MUST_USE fth_status fth_hold_create(fth_hold **out, fth_mem *mem, const char *folder,
                                                fth_err *err);
FTH_API void fth_hold_release(fth_hold *hold); /* NULL is allowed */
/* Remove stale temporary files and folders of `path`, and count them. Those of a process that holds
 * the folder, on any machine, or whose process id is alive on this machine, stay. */
FTH_API FTH_MUST_USE fth_status fth_remains_remove(fth_mem *mem, const char *path, int64_t *count,
                                                   fth_err *err);

/* ---- arrays on disk ---- */

typedef struct fth_scratch fth_scratch;
/* An array in an unlinked file in `dir`, often fth_context_scratch_dir. Elements never written are
 * zero. If `dir` is NULL there is no file: source and sink have only a shape, for plans. */
FTH_API FTH_MUST_USE fth_status fth_scratch_create(fth_scratch **out, fth_mem *mem, const char *dir,
                                                   const char *what, fth_dtype dtype, int n_axes,
                                                   const int64_t *size, fth_err *err);
FTH_API void fth_scratch_destroy(fth_scratch *a); /* NULL is allowed */
FTH_API uint64_t fth_scratch_bytes(const fth_scratch *a);
/* Both are valid until the array is destroyed, and need no close. */
FTH_API fth_source fth_scratch_source(fth_scratch *a);
FTH_API fth_sink fth_scratch_sink(fth_scratch *a);

FTH_END_DECLS
#endif /* FATHOM_FILES_H */
