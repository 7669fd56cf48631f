/* job/json.h - JSON: a writer that cannot make a bad text, and a reader for what others wrote.
 *
 * The writer sets commas and escapes; what fails while writing (no memory, no room) is remembered
 * and reported once, at the end. The reader bounds the text, its depth and its values before it
 * is parsed, so no input can take more than about 100 bytes for each byte it has. Whatever is
 * missing or of another type reads as the default the caller gives. jansson stays behind json.c.
 *
 *   fth__json_writer w;                         fth__json *doc = NULL;
 *   fth__json_begin(&w, mem, true);             FTH_TRY(fth__json_load(&doc, mem, path, err));
 *   fth__json_open(&w, NULL, '{');              const fth__json_value *v = fth__json_root(doc);
 *   fth__json_text(&w, "name", name);           name = fth__json_get_text(v, "name", "");
 *   fth__json_close(&w);                        ...
 *   s = fth__json_save(&w, path, err);          fth__json_destroy(doc);
 */
#ifndef FTH_JOB_JSON_H
#define FTH_JOB_JSON_H

#include <fathom/memory.h>

/* ---- writing ---- */

enum { FTH__JSON_DEPTH = 64 };

typedef struct fth__json_writer {
    fth_mem *mem; /* of a growing text; NULL: a buffer of the caller's or a file */
    FILE *file;
    const char *what; /* the file is called in errors */
    char *data;       /* terminated */
    int64_t used, bytes;
    int depth, row; /* row: where the object or list that is on one line began; 0: in none */
    bool comma, indent;
    fth_status status;
    char bracket[FTH__JSON_DEPTH]; /* that closes each level */
} fth__json_writer;

/* Into memory that grows: give it back with fth__json_free. With `indent` for people: every value
 * on a line of its own, but what stands in a list whole on one line. Else all on one line. */
void fth__json_begin(fth__json_writer *w, fth_mem *mem, bool indent);
/* On one line, into a buffer of the caller's; what does not fit makes fth__json_end fail. */
void fth__json_begin_fixed(fth__json_writer *w, char *data, size_t bytes);
/* Into an open file, bit by bit; errors call it `what`. */
void fth__json_begin_file(fth__json_writer *w, FILE *file, const char *what, bool indent);
/* In an object every value has a key; in a list, and outermost, it is NULL. */
void fth__json_open(fth__json_writer *w, const char *key, char bracket); /* '{' or '[' */
void fth__json_close(fth__json_writer *w);
/* Bytes that are not UTF-8 become U+FFFD; '<' is escaped, so no text can end the <script> element
 * that a page keeps it in. NULL is null. */
void fth__json_text(fth__json_writer *w, const char *key, const char *value);
/* The same of n bytes, which need no end. */
void fth__json_bytes(fth__json_writer *w, const char *key, const char *value, size_t n);
void fth__json_int(fth__json_writer *w, const char *key, int64_t value);
/* Above 2^63 - 1, which many readers cannot hold, as a text of digits. */
void fth__json_u64(fth__json_writer *w, const char *key, uint64_t value);
/* 16 hex digits. */
void fth__json_hash(fth__json_writer *w, const char *key, uint64_t value);
/* The shortest text that reads as this number; what is not finite is null. */
void fth__json_real(fth__json_writer *w, const char *key, double value);
/* With three decimals, or none where they are 0. */
void fth__json_seconds(fth__json_writer *w, const char *key, double value);
void fth__json_bool(fth__json_writer *w, const char *key, bool value);
void fth__json_null(fth__json_writer *w, const char *key);
/* What happened: FTH_E_NOMEM, FTH_E_FILE_WRITE of a file, FTH_E_INTERNAL when brackets do not
 * match or the buffer was too small. The text is w->data, w->used bytes. */
fth_status fth__json_end(fth__json_writer *w, fth_err *err);
/* FTH_E_FILE_WRITE when anything put into the file before, JSON or not, could not be written. */
fth_status fth__stream_end(FILE *file, const char *what, fth_err *err);
/* End, write the text to a file, whole or not at all, and free. */
fth_status fth__json_save(fth__json_writer *w, const char *path, fth_err *err);
void fth__json_free(fth__json_writer *w); /* does nothing the second time */

/* ---- reading ---- */

typedef struct fth__json fth__json;
typedef struct fth__json_value fth__json_value; /* lives as long as its document */

/* FTH_E_FILE_FORMAT names `name`, line and column. */
fth_status fth__json_parse(fth__json **out, fth_mem *mem, const char *name, const char *text,
                           size_t bytes, fth_err *err);
/* The same of a file; FTH_E_FILE_OPEN when there is none. */
fth_status fth__json_load(fth__json **out, fth_mem *mem, const char *path, fth_err *err);
void fth__json_destroy(fth__json *doc); /* NULL is allowed */

const fth__json_value *fth__json_root(const fth__json *doc);
/* NULL: there is none. All functions below take NULL for a value. */
const fth__json_value *fth__json_get(const fth__json_value *object, const char *key);
const fth__json_value *fth__json_at(const fth__json_value *list, int64_t i);
/* Members of an object, elements of a list, 0 otherwise. */
int64_t fth__json_count(const fth__json_value *v);
bool fth__json_is_object(const fth__json_value *v);
/* Members in their order: `at` starts as NULL; false after the last. */
bool fth__json_next(const fth__json_value *object, const void **at, const char **key,
                    const fth__json_value **value);

/* The member `key`, or with NULL the value itself. */
const char *fth__json_get_text(const fth__json_value *v, const char *key, const char *otherwise);
int64_t fth__json_get_int(const fth__json_value *v, const char *key, int64_t otherwise);
uint64_t fth__json_get_u64(const fth__json_value *v, const char *key, uint64_t otherwise);
uint64_t fth__json_get_hash(const fth__json_value *v, const char *key, uint64_t otherwise);
double fth__json_get_real(const fth__json_value *v, const char *key, double otherwise);
bool fth__json_get_bool(const fth__json_value *v, const char *key, bool otherwise);
/* Write a value that was read, as it is. */
void fth__json_copy(fth__json_writer *w, const char *key, const fth__json_value *v);

#endif
