/* fathom/reader.h - read text files in bounded memory: lines, fields, words, numbers, CSV tables.
 *
 * A file of any length needs one buffer of fixed size. Lines end with LF or CR LF, the last one
 * optionally; numbers are independent of the locale.
 *
 *   fth_reader r;
 *   fth_text_line line;
 *   fth_text_field f;
 *   FTH_TRY(fth_reader_open(&r, mem, path, NULL, err));
 *   while ((s = fth_reader_next(&r, &line, err)) == FTH_OK && line.text)
 *       while (s == FTH_OK && fth_text_field_next(&line, " \t,", &f))
 *           s = fth_reader_real(&r, &f, 0, 1, &value, err); // path:3:7: expected a number ...
 *   fth_reader_close(&r);
 *
 * Ownership: lines, fields and words point into the buffer and live until the next call with
 *            their reader; the path is the caller's and lives as long.
 * Threads:   one thread at a time per reader.
 * Failure:   errors name file and line, for a field its column, what was expected and found.
 */
#ifndef FATHOM_READER_H
#define FATHOM_READER_H

#include <fathom/memory.h>
#include <fathom/number.h>

FTH_BEGIN_DECLS

enum { FTH_READER_ROOM = 65536, FTH_READER_NUMBER = 512 }; /* bytes: buffer, longest number */

typedef struct fth_reader_options {
    size_t room;        /* bytes of the buffer, which the longest line fills; 0: FTH_READER_ROOM */
    uint64_t max_bytes; /* a longer file is refused; 0: any                                      */
    bool keep_bom;      /* the mark before UTF-8 is part of the first line; else it is left out  */
    bool allow_nul;     /* a zero byte ends the text of its line; else it is an error            */
    bool unpack;        /* a file that begins as gzip does is unpacked on the way                */
} fth_reader_options;

typedef struct fth_reader {
    fth_mem *mem;
    const char *path;
    fth_reader_options options;
    int fd;
    bool end;      /* the buffer holds the last bytes of the file                     */
    char *buffer;  /* NULL until something is read; buffer[n] is 0                    */
    size_t at, n;  /* next byte, bytes there are                                      */
    uint64_t got;  /* bytes read from the file                                        */
    int64_t line;  /* number of the line of the next byte, from 1                     */
    bool skipping; /* words: inside a comment                                         */
    void *unzip;   /* of a packed file; else NULL                                     */
} fth_reader;

/* Any file that can be read, a pipe as well; `options` NULL: all 0. */
FTH_API FTH_MUST_USE fth_status fth_reader_open(fth_reader *r, fth_mem *mem, const char *path,
                                                const fth_reader_options *options, fth_err *err);
FTH_API void fth_reader_close(fth_reader *r); /* one that did not open is allowed */
/* Back to the first byte. A pipe cannot. */
FTH_API FTH_MUST_USE fth_status fth_reader_rewind(fth_reader *r, fth_err *err);
/* At least `want` bytes from buffer[at] on, or all that the file still has. */
FTH_API FTH_MUST_USE fth_status fth_reader_fill(fth_reader *r, size_t want, fth_err *err);
/* All that is left, terminated, in one block: release it with fth_mem_release. Of a file of which
 * nothing was read yet this is the only block that is taken. */
FTH_API FTH_MUST_USE fth_status fth_reader_rest(fth_reader *r, const char *label, char **text,
                                                int64_t *bytes, fth_err *err);

/* ---- lines and fields ---- */

typedef struct fth_text_line {
    char *text; /* terminated, without the end of the line; NULL: there are no more */
    size_t n;
    int64_t number; /* from 1 */
    bool whole;     /* false: a zero byte ended the text (allow_nul) */
    char *at;       /* next field; NULL: none is left */
} fth_text_line;

typedef struct fth_text_field {
    const char *text; /* not terminated */
    size_t n;
    int64_t line, column; /* from 1; column 0: not known, of a word */
} fth_text_field;

/* FTH_E_FILE_FORMAT for a line that is longer than the buffer. */
FTH_API FTH_MUST_USE fth_status fth_reader_next(fth_reader *r, fth_text_line *line, fth_err *err);
/* The next field between any number of separators; false: there are no more. */
FTH_API bool fth_text_field_next(fth_text_line *line, const char *separators, fth_text_field *f);
/* The next field up to one separator, its quotes taken off in place; it may be empty. An empty line
 * has one empty field. */
FTH_API bool fth_text_column_next(fth_text_line *line, char separator, fth_text_field *f);
/* The next word of the file, wherever lines end, between any of the separators, white space among
 * them or not; from `comment` (0: none) to the end of a line nothing counts. f->text is NULL at the
 * end. A word has at most FTH_READER_NUMBER - 1 bytes. */
FTH_API FTH_MUST_USE fth_status fth_reader_word(fth_reader *r, const char *separators, char comment,
                                                fth_text_field *f, fth_err *err);

/* ---- numbers ---- */

/* The whole field as one number, decimal, hex, inf or nan; false: it is none. */
FTH_API bool fth_text_real(const fth_text_field *f, double *out);
/* Digits and a sign; false: it is something else or does not fit. */
FTH_API bool fth_text_int(const fth_text_field *f, int64_t *out);
/* The same within [low, high]; the error says where, what was expected and what was found. */
FTH_API FTH_MUST_USE fth_status fth_reader_real(const fth_reader *r, const fth_text_field *f,
                                                double low, double high, double *out, fth_err *err);
FTH_API FTH_MUST_USE fth_status fth_reader_int(const fth_reader *r, const fth_text_field *f,
                                               int64_t low, int64_t high, int64_t *out,
                                               fth_err *err);
/* FTH_E_FILE_FORMAT "path:line:column: expected a name, found "..."". */
FTH_API fth_status fth_reader_fail(const fth_reader *r, const fth_text_field *f,
                                   const char *expected, fth_err *err);
/* The columns of a line as n numbers, number i within [low[i], high[i]]. `expected` says what is
 * missing where there are fewer, "x,y,depth"; more are an error too. */
FTH_API FTH_MUST_USE fth_status fth_reader_row(const fth_reader *r, fth_text_line *line,
                                               char separator, int n, const double *low,
                                               const double *high, double *out,
                                               const char *expected, fth_err *err);
/* The next number after any white space, as scanf takes it ("1e" is read whole, and is 1); *found
 * is false at the first text that is none and at the end. *digits: it was written with digits and a
 * sign alone. */
FTH_API FTH_MUST_USE fth_status fth_reader_scan(fth_reader *r, double *v, bool *found, bool *digits,
                                                fth_err *err);

/* ---- tables ---- */

/* A CSV file, read whole and cut where it stands: fields lose their quotes and end with \0. */
typedef struct fth_csv {
    fth_mem *mem;
    char *text;
    int64_t *field;      /* where each starts, row after row */
    int64_t rows, width; /* all rows have as many fields; empty lines are no rows */
    const char *path;
} fth_csv;
FTH_API FTH_MUST_USE fth_status fth_csv_read(fth_csv *c, fth_mem *mem, const char *path,
                                             fth_err *err);
FTH_API void fth_csv_free(fth_csv *c); /* an empty one is allowed */
FTH_API const char *fth_csv_get(const fth_csv *c, int64_t row, int64_t column);

FTH_END_DECLS
#endif /* FATHOM_READER_H */
