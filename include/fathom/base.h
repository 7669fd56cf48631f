/* fathom/base.h - status codes, error objects, call sites and logging.
 *
 * Every fallible function returns an fth_status and takes an fth_err as its
 * last argument; the caller owns it and may pass NULL. The error is a
 * fixed-size struct: reporting that memory ran out needs no memory. It keeps
 * the first cause; callers further up add context lines and never replace it.
 *
 * Threads: any thread, as long as two threads do not share one fth_err.
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

/* The version of the running library, e.g. "0.1.0"; it may differ from FTH_VERSION_TEXT. */
FTH_API const char *fth_version(void);

typedef enum fth_status {
    FTH_OK = 0,
#define FTH_ERROR(name, code, exit, brief, hint) FTH_E_##name,
#include <fathom/errors.def>
#undef FTH_ERROR
    FTH_STATUS_COUNT
} fth_status;

/* What errors.def says about one status. An unknown number gives the row of INTERNAL. */
typedef struct fth_status_info {
    const char *name;  /* "AXIS_SIZE" */
    const char *code;  /* "FTH-AXIS-002" */
    const char *brief; /* one line, the general case */
    const char *hint;  /* one line, what to do next */
    int exit_code;     /* exit code of the program when this status is the cause */
} fth_status_info;
FTH_API const fth_status_info *fth_status_get_info(fth_status status);

/* A line of source code. Builders record the line of the program that called them. */
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
    char note[FTH_ERR_NOTE]; /* what the library was doing there; may be empty */
} fth_err_frame;

typedef struct fth_err {
    fth_status status;
    int n_frames;            /* innermost first; frames beyond FTH_ERR_FRAMES are dropped */
    fth_site origin;         /* line of the user's program; file is NULL if unknown */
    int64_t need;            /* FTH_E_CAPACITY: the capacity required; else 0 */
    char text[FTH_ERR_TEXT]; /* what was expected and what was found */
    char hint[FTH_ERR_HINT]; /* one thing to do next */
    fth_err_frame frame[FTH_ERR_FRAMES]; /* call stack inside the library */
} fth_err;

/* Reset `err` to "no error". NULL is allowed. */
FTH_API void fth_err_clear(fth_err *err);

/* Format the error as the program prints it, on several lines, always terminated.
 * Returns the length required, like snprintf. */
FTH_API size_t fth_err_format(const fth_err *err, char *text, size_t bytes);

/* Record a failure: set the text if `err` is still empty, and always add a frame.
 * Returns `status`, so that a caller can write `return FTH_FAIL(...)`. */
FTH_API fth_status fth_err_set(fth_err *err, fth_site where, fth_status status, const char *fmt,
                               ...) FTH_PRINTF(4, 5);
/* Add a frame with a context line to an existing error. Returns `status`. */
FTH_API fth_status fth_err_note(fth_err *err, fth_site where, fth_status status, const char *fmt,
                                ...) FTH_PRINTF(4, 5);
/* Set what to do next, in place of the status' general hint. */
FTH_API void fth_err_hint(fth_err *err, const char *fmt, ...) FTH_PRINTF(2, 3);
/* Set the line of the user's program that caused the error, unless one is set already. */
FTH_API void fth_err_origin(fth_err *err, fth_site origin);

/* FTH_E_CAPACITY: a length that depends on the data exceeds the planned capacity. The caller plans
 * again with a capacity of err->need plus a margin. */
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

/* XXH64: the one hash used for files and results. */
FTH_API uint64_t fth_hash_bytes(const void *data, size_t bytes, uint64_t seed);

/* Log levels: ERROR the result is lost; WARN the user should know; INFO one
 * line per action the user requested; DEBUG for developers of Fathom. */
typedef enum fth_log_level {
    FTH_LOG_ERROR,
    FTH_LOG_WARN,
    FTH_LOG_INFO,
    FTH_LOG_DEBUG
} fth_log_level;
typedef struct fth_log {
    /* Called from any thread with one line, without its line break. NULL: silent. */
    void (*write)(void *user, fth_log_level level, const char *line);
    void *user;
    fth_log_level level; /* more verbose lines are not formatted */
} fth_log;
FTH_API void fth_log_line(const fth_log *log, fth_log_level level, const char *fmt, ...)
    FTH_PRINTF(3, 4);

FTH_END_DECLS
#endif /* FATHOM_BASE_H */
