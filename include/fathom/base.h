/* fathom/base.h - status codes, error objects, call sites and logging.
 *
 * Every fallible function returns an fth_status and takes an fth_err as its
 * last argument, which the caller owns and may pass as NULL. The error is a
 * fixed-size struct: reporting that memory ran out needs no memory. The first
 * cause is kept; callers on the way up add context lines, never replace it.
 *
 * Threads: everything here may be called from any thread on distinct objects.
 * Failure: nothing here aborts, exits or prints.
 */
#ifndef FATHOM_BASE_H
#define FATHOM_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
#define FTH_BEGIN_DECLS extern "C" {
#define FTH_END_DECLS }
#else
#define FTH_BEGIN_DECLS
#define FTH_END_DECLS
#endif

#if defined(__GNUC__)
#define FTH_API __attribute__((visibility("default")))
#define FTH_MUST_USE __attribute__((warn_unused_result))
#define FTH_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define FTH_API
#define FTH_MUST_USE
#define FTH_PRINTF(fmt, args)
#endif

FTH_BEGIN_DECLS

#define FTH_VERSION_MAJOR 0
#define FTH_VERSION_MINOR 1
#define FTH_VERSION_PATCH 0
#define FTH_VERSION_TEXT "0.1.0"

/* The version of the library that is running, e.g. "0.1.0". */
FTH_API const char *fth_version(void);

typedef enum fth_status {
    FTH_OK = 0,
#define FTH_ERROR(name, code, exit, brief, hint) FTH_E_##name,
#include <fathom/errors.def>
#undef FTH_ERROR
    FTH_STATUS_COUNT
} fth_status;

/* Facts of one status, from errors.def. Unknown numbers give the row of INTERNAL. */
typedef struct fth_status_info {
    const char *name;  /* "AXIS_SIZE" */
    const char *code;  /* "FTH-AXIS-002" */
    const char *brief; /* one line, the general case */
    const char *hint;  /* one line, what to do next */
    int exit_code;     /* of the program when this is the cause */
} fth_status_info;
FTH_API const fth_status_info *fth_status_get_info(fth_status status);

/* A place in somebody's source: the program's when builders record it. */
typedef struct fth_site {
    const char *file;
    const char *func;
    int line;
} fth_site;
#ifdef __cplusplus
#define FTH_HERE (fth_site{__FILE__, __func__, __LINE__})
#else
#define FTH_HERE ((fth_site){__FILE__, __func__, __LINE__})
#endif

enum { FTH_ERR_TEXT = 1400, FTH_ERR_HINT = 400, FTH_ERR_FRAMES = 6, FTH_ERR_NOTE = 120 };

typedef struct fth_err_frame {
    fth_site site;
    char note[FTH_ERR_NOTE]; /* what was being done there; may be empty */
} fth_err_frame;

typedef struct fth_err {
    fth_status status;
    int n_frames;            /* innermost first; outer ones beyond the limit are dropped */
    fth_site origin;         /* line of the user's program, where one is known */
    int64_t need;            /* FTH_E_CAPACITY: the length that there must be room for; else 0 */
    char text[FTH_ERR_TEXT]; /* what was wanted and what was found */
    char hint[FTH_ERR_HINT]; /* one thing to do next */
    fth_err_frame frame[FTH_ERR_FRAMES]; /* where the library was */
} fth_err;

/* Make `err` hold no error. NULL is allowed. */
FTH_API void fth_err_clear(fth_err *err);

/* Write the error as the program shows it, several lines, always terminated.
 * Returns the length it would need, like snprintf. */
FTH_API size_t fth_err_format(const fth_err *err, char *text, size_t bytes);

/* Record a failure: the text if `err` is still empty, a frame either way.
 * Returns `status`, so that a caller can write `return FTH_FAIL(...)`. */
FTH_API fth_status fth_err_set(fth_err *err, fth_site where, fth_status status, const char *fmt,
                               ...) FTH_PRINTF(4, 5);
/* Add a context line to an error that is already there. Returns its status. */
FTH_API fth_status fth_err_note(fth_err *err, fth_site where, fth_status status, const char *fmt,
                                ...) FTH_PRINTF(4, 5);
/* Say what to do next; replaces the general hint of the status. */
FTH_API void fth_err_hint(fth_err *err, const char *fmt, ...) FTH_PRINTF(2, 3);
/* Name the line of the user's program that the error is about. */
FTH_API void fth_err_origin(fth_err *err, fth_site origin);

/* FTH_E_CAPACITY: a length that only the data know is more than was planned for. The caller plans
 * again with room for err->need, and some more. */
FTH_API fth_status fth_err_capacity(fth_err *err, fth_site where, int64_t need, const char *fmt,
                                    ...) FTH_PRINTF(4, 5);

#define FTH_FAIL(err, status, ...) fth_err_set((err), FTH_HERE, (status), __VA_ARGS__)
#define FTH_TRY(call)                                                                              \
    do {                                                                                           \
        const fth_status fth_try_status_ = (call);                                                 \
        if (fth_try_status_ != FTH_OK) return fth_try_status_;                                     \
    } while (0)
#define FTH_TRY_CTX(call, err, ...)                                                                \
    do {                                                                                           \
        const fth_status fth_try_status_ = (call);                                                 \
        if (fth_try_status_ != FTH_OK)                                                             \
            return fth_err_note((err), FTH_HERE, fth_try_status_, __VA_ARGS__);                    \
    } while (0)

/* xxh64, the one hash of files and results. */
FTH_API uint64_t fth_hash_bytes(const void *data, size_t bytes, uint64_t seed);

/* Log levels: ERROR the result is lost; WARN the user should know; INFO one
 * line per thing the user asked for; DEBUG for us. */
typedef enum fth_log_level {
    FTH_LOG_ERROR,
    FTH_LOG_WARN,
    FTH_LOG_INFO,
    FTH_LOG_DEBUG
} fth_log_level;
typedef struct fth_log {
    void (*write)(void *user, fth_log_level level, const char *line); /* NULL: silent */
    void *user;
    fth_log_level level; /* lines above this level are not made */
} fth_log;
FTH_API void fth_log_line(const fth_log *log, fth_log_level level, const char *fmt, ...)
    FTH_PRINTF(3, 4);

FTH_END_DECLS
#endif /* FATHOM_BASE_H */
