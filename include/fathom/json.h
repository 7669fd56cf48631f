/* fathom/json.h - a JSON writer that always produces valid text, and a reader for untrusted input.
 *
 * The writer inserts commas and escapes; the first failure (memory, capacity) is remembered and
 * reported once, at the end. The reader limits size, depth and number of values before parsing, so
 * that no input needs more than about 100 bytes of memory per byte. Missing values, and values of
 * another type, read as the caller's default. NaN and Infinity, which Python writes although JSON
 * lacks them, read as null.
 *
 *   fth_json_writer w;                          fth_json *doc = NULL;
 *   fth_json_begin(&w, mem, true);              FTH_TRY(fth_json_load(&doc, mem, path, err));
 *   fth_json_open(&w, NULL, '{');               const fth_json_value *v = fth_json_root(doc);
 *   fth_json_text(&w, "name", name);            name = fth_json_get_text(v, "name", "");
 *   fth_json_close(&w);                         ...
 *   s = fth_json_save(&w, path, err);           fth_json_destroy(doc);
 *
 * Ownership: a text in memory belongs to its writer until fth_json_free or fth_json_save.
 * Threads:   one thread at a time per writer; any number may read one document.
 * Failure:   on failure *out is NULL; of a file nothing is left behind.
 */
#ifndef FATHOM_JSON_H
#define FATHOM_JSON_H

#include <fathom/memory.h>

FTH_BEGIN_DECLS

/* ---- writing ---- */

enum { FTH_JSON_DEPTH = 64 };

/* A number that is not finite, which JSON does not have. */
typedef enum fth_json_nan {
    FTH_JSON_NAN_NULL, /* null                                                              */
    FTH_JSON_NAN_NAME, /* NaN, Infinity, -Infinity, as Python writes and reads; not JSON    */
    FTH_JSON_NAN_ZERO  /* 0, for readers that take only numbers                             */
} fth_json_nan;

typedef struct fth_json_writer {
    fth_mem *mem; /* of a growing text; NULL: a buffer of the caller's or a file */
    FILE *file;
    const char *what; /* the file is called in errors */
    char *data;       /* terminated */
    int64_t used, bytes;
    int depth, row; /* row: where the object or list that is on one line began; 0: in none */
    bool comma, indent;
    /* Options, to be set after `begin`. */
    fth_json_nan nan;
    int digits;  /* of real numbers, 1 to 17; 0: the fewest that read as the same number */
    bool tall;   /* with `indent`: what stands in a list, too, has a line for every value */
    bool spaced; /* in what is on one line, a blank follows every comma and colon */
    fth_status status;
    char bracket[FTH_JSON_DEPTH]; /* that closes each level */
} fth_json_writer;

/* Into memory that grows: give it back with fth_json_free. With `indent` for people: every value
 * on a line of its own, but what stands in a list whole on one line. Else all on one line. */
FTH_API void fth_json_begin(fth_json_writer *w, fth_mem *mem, bool indent);
/* On one line, into a buffer of the caller's; what does not fit makes fth_json_end fail. */
FTH_API void fth_json_begin_fixed(fth_json_writer *w, char *data, size_t bytes);
/* Into an open file, bit by bit; errors call it `what`. */
FTH_API void fth_json_begin_file(fth_json_writer *w, FILE *file, const char *what, bool indent);
/* In an object every value has a key; in a list, and outermost, it is NULL. */
FTH_API void fth_json_open(fth_json_writer *w, const char *key, char bracket); /* '{' or '[' */
/* The same, all on one line even with `indent`. */
FTH_API void fth_json_open_row(fth_json_writer *w, const char *key, char bracket);
FTH_API void fth_json_close(fth_json_writer *w);
/* Bytes that are not UTF-8 become U+FFFD; '<' is escaped, so no text can end the <script> element
 * that a page keeps it in. NULL is null. */
FTH_API void fth_json_text(fth_json_writer *w, const char *key, const char *value);
/* The same of n bytes, which need no end. */
FTH_API void fth_json_bytes(fth_json_writer *w, const char *key, const char *value, size_t n);
FTH_API void fth_json_int(fth_json_writer *w, const char *key, int64_t value);
/* Above 2^63 - 1, which many readers cannot hold, as a text of digits. */
FTH_API void fth_json_u64(fth_json_writer *w, const char *key, uint64_t value);
/* 16 hex digits. */
FTH_API void fth_json_hash(fth_json_writer *w, const char *key, uint64_t value);
/* By the options `digits` and `nan`: the shortest text that reads as this number, or null. */
FTH_API void fth_json_real(fth_json_writer *w, const char *key, double value);
/* value / 10^decimals, exactly, with all its decimals (0 to 18): 1500 with three is 1.500. */
FTH_API void fth_json_scaled(fth_json_writer *w, const char *key, int64_t value, int decimals);
/* With three decimals, or none where they are 0. */
FTH_API void fth_json_seconds(fth_json_writer *w, const char *key, double value);
FTH_API void fth_json_bool(fth_json_writer *w, const char *key, bool value);
FTH_API void fth_json_null(fth_json_writer *w, const char *key);
/* The result: FTH_E_NOMEM, FTH_E_FILE_WRITE for a file, FTH_E_INTERNAL if brackets do not match or
 * the buffer was too small. The text is w->data, of w->used bytes. */
FTH_API FTH_MUST_USE fth_status fth_json_end(fth_json_writer *w, fth_err *err);
/* FTH_E_FILE_WRITE when anything put into the file before, JSON or not, could not be written. */
FTH_API FTH_MUST_USE fth_status fth_stream_end(FILE *file, const char *what, fth_err *err);
/* End, write the text to a file, whole or not at all, and free. */
FTH_API FTH_MUST_USE fth_status fth_json_save(fth_json_writer *w, const char *path, fth_err *err);
FTH_API void fth_json_free(fth_json_writer *w); /* does nothing the second time */

/* ---- reading ---- */

typedef struct fth_json fth_json;
typedef struct fth_json_value fth_json_value; /* lives as long as its document */

/* FTH_E_FILE_FORMAT names `name`, line and column. */
FTH_API FTH_MUST_USE fth_status fth_json_parse(fth_json **out, fth_mem *mem, const char *name,
                                               const char *text, size_t bytes, fth_err *err);
/* The same of a file; FTH_E_FILE_OPEN when there is none. */
FTH_API FTH_MUST_USE fth_status fth_json_load(fth_json **out, fth_mem *mem, const char *path,
                                              fth_err *err);
FTH_API void fth_json_destroy(fth_json *doc); /* NULL is allowed */

FTH_API const fth_json_value *fth_json_root(const fth_json *doc);
/* NULL: there is none. All functions below take NULL for a value. */
FTH_API const fth_json_value *fth_json_get(const fth_json_value *object, const char *key);
FTH_API const fth_json_value *fth_json_at(const fth_json_value *list, int64_t i);
/* Members of an object, elements of a list, 0 otherwise. */
FTH_API int64_t fth_json_count(const fth_json_value *v);
FTH_API bool fth_json_is_object(const fth_json_value *v);
/* Members in their order: `at` starts as NULL; false after the last. */
FTH_API bool fth_json_next(const fth_json_value *object, const void **at, const char **key,
                           const fth_json_value **value);

/* The member `key`, or with NULL the value itself. */
FTH_API const char *fth_json_get_text(const fth_json_value *v, const char *key,
                                      const char *otherwise);
FTH_API int64_t fth_json_get_int(const fth_json_value *v, const char *key, int64_t otherwise);
FTH_API uint64_t fth_json_get_u64(const fth_json_value *v, const char *key, uint64_t otherwise);
FTH_API uint64_t fth_json_get_hash(const fth_json_value *v, const char *key, uint64_t otherwise);
FTH_API double fth_json_get_real(const fth_json_value *v, const char *key, double otherwise);
FTH_API bool fth_json_get_bool(const fth_json_value *v, const char *key, bool otherwise);
/* Write a value that was read, as it is. */
FTH_API void fth_json_copy(fth_json_writer *w, const char *key, const fth_json_value *v);

FTH_END_DECLS
#endif /* FATHOM_JSON_H */
