/* io/parquet.h - what the parts of the Parquet reader share: the footer, and a page of values.
 *
 * parquet.c reads the footer, parquet_pages.c finds pages and unpacks them, parquet_values.c makes
 * values of a page. A column holds one page and its dictionary; values come out in pieces.
 */
#ifndef FTH_IO_PARQUET_H
#define FTH_IO_PARQUET_H

#include <fathom/parquet.h>

#include "io/file.h"

/* ---- the footer ---- */

typedef enum fth__parquet_physical { /* the numbers of the format */
                                     FTH__PARQUET_BOOLEAN,
                                     FTH__PARQUET_INT32,
                                     FTH__PARQUET_INT64,
                                     FTH__PARQUET_INT96,
                                     FTH__PARQUET_FLOAT,
                                     FTH__PARQUET_DOUBLE,
                                     FTH__PARQUET_BYTE_ARRAY,
                                     FTH__PARQUET_FIXED,
                                     FTH__PARQUET_PHYSICALS
} fth__parquet_physical;

enum { /* how pages are packed: the numbers of the format */
       FTH__PARQUET_PLAIN = 0,
       FTH__PARQUET_SNAPPY = 1,
       FTH__PARQUET_GZIP = 2,
       FTH__PARQUET_ZSTD = 6,
       FTH__PARQUET_LZ4_RAW = 7
};

typedef struct fth__parquet_leaf {
    char *name; /* "a.b" inside a group */
    fth__parquet_physical physical;
    int32_t width;    /* of FIXED */
    bool optional;    /* values may be null */
    bool nested;      /* inside a group, or repeated */
    bool is_unsigned; /* whole numbers */
    bool decimal;     /* a scaled number: its digits alone mean nothing */
} fth__parquet_leaf;

typedef struct fth__parquet_chunk {
    uint64_t offset, bytes; /* within the file; checked */
    int64_t values;
    int32_t codec;
} fth__parquet_chunk;

struct fth_parquet {
    fth_mem *mem;
    fth_file *file;
    uint64_t end; /* of the data: where the footer starts */
    int64_t rows;
    fth__parquet_leaf *leaf;
    int64_t n_leaves, leaf_cap;
    int64_t *group_rows;
    int64_t n_groups, group_cap;
    fth__parquet_chunk *chunk; /* [group][leaf] */
    int64_t chunk_cap;
};

/* ---- encodings ---- */

/* Runs of equal numbers and packed numbers of `width` bits: levels, indices, truth values. */
typedef struct fth__parquet_runs {
    const uint8_t *at, *end;
    int width;
    uint64_t left; /* of the run */
    bool packed;
    uint32_t value;      /* of a run of equal ones */
    const uint8_t *bits; /* of packed ones, and how many were taken */
    uint64_t taken;
} fth__parquet_runs;
bool fth__parquet_runs_take(fth__parquet_runs *r, int64_t n, uint32_t *out);

/* Differences, packed in blocks of miniblocks. */
typedef struct fth__parquet_delta {
    const uint8_t *at, *end, *bits;
    const uint8_t *widths;          /* of the miniblocks of this block */
    uint64_t total, given;          /* values */
    uint64_t per_mini, minis, mini; /* the next of `minis` */
    uint64_t left, taken;           /* of the miniblock */
    int width;
    uint64_t least, last; /* modulo 2^64 */
} fth__parquet_delta;
bool fth__parquet_delta_begin(fth__parquet_delta *d, const uint8_t *at, const uint8_t *end);
bool fth__parquet_delta_take(fth__parquet_delta *d, int64_t n, int64_t *out);

/* ---- a column ---- */

enum { FTH__PARQUET_PIECE = 4096 }; /* rows of a block: they stay in a core's cache */

/* Memory that grows: what it held before is lost. */
typedef struct fth__parquet_room {
    uint8_t *data;
    uint64_t bytes;
} fth__parquet_room;

typedef struct fth__parquet_page {
    int64_t left;     /* values that are still to come, nulls included */
    int32_t encoding; /* the number of the format */
    uint64_t offset;  /* of its header in the file */
    bool has_levels;
    fth__parquet_runs levels, runs;
    fth__parquet_delta delta;
    const uint8_t *at, *end; /* of the values; of BYTE_STREAM_SPLIT the start stays */
    uint64_t given;          /* of packed bools and split bytes */
} fth__parquet_page;

struct fth_parquet_column {
    fth_parquet *file;
    int64_t index;
    const fth__parquet_leaf *leaf;
    fth_parquet_type type;
    int64_t item;       /* bytes of a value in the file */
    int64_t group, row; /* the row group of the page; rows that came out */
    int64_t left;       /* values of the chunk behind the page */
    uint64_t at, end;   /* the next page, the end of the chunk */
    fth__parquet_page page;
    fth__parquet_room head, packed, data, dictionary, words, work;
    int64_t n_words; /* of the dictionary */
    bool has_dictionary;
    uint32_t number[FTH__PARQUET_PIECE];
    int64_t wide[FTH__PARQUET_PIECE];
    uint8_t present[FTH__PARQUET_PIECE];
    union {
        uint8_t bools[FTH__PARQUET_PIECE];
        int32_t i32[FTH__PARQUET_PIECE];
        int64_t i64[FTH__PARQUET_PIECE];
        float f32[FTH__PARQUET_PIECE];
        double f64[FTH__PARQUET_PIECE];
        fth_parquet_text text[FTH__PARQUET_PIECE];
    } v;
};

/* "x.parquet, column 'a', row group 2, byte 1234: ..." */
fth_status fth__parquet_fail_(const fth_parquet_column *c, fth_err *err, fth_site site,
                              fth_status status, uint64_t offset, const char *fmt, ...)
    FTH_PRINTF(6, 7);
#define FTH__PARQUET_FAIL(c, err, status, offset, ...)                                             \
    fth__parquet_fail_((c), (err), FTH_HERE, (status), (offset), __VA_ARGS__)
fth_status fth__parquet_room_take(fth_parquet_column *c, fth__parquet_room *room, uint64_t bytes,
                                  const char *what, fth_err *err);
/* The name of a codec; NULL: there is none of that number. */
const char *fth__parquet_codec_name(int32_t codec);

/* The next page of values of the chunk, dictionaries read on the way. */
fth_status fth__parquet_page_next(fth_parquet_column *c, fth_err *err);
/* Prepare the values of a page, once `at` and `end` stand. */
fth_status fth__parquet_values_begin(fth_parquet_column *c, fth_err *err);
/* The next n values that are not null, to c->v. */
fth_status fth__parquet_values_take(fth_parquet_column *c, int64_t n, fth_err *err);
/* The dictionary's n values, unpacked in c->dictionary with `bytes`. */
fth_status fth__parquet_dictionary(fth_parquet_column *c, int64_t n, uint64_t bytes,
                                   uint64_t offset, fth_err *err);

#endif
