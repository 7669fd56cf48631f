/* io/parquet_thrift.h - the compact protocol of Thrift, in which Parquet keeps its headers.
 *
 * A struct is a row of fields, each a number and a type, ended by a zero byte; what a reader does
 * not know is skipped. Nothing is copied: texts point into the bytes. The first failure stays:
 * every later call gives zeros, and `bad` says whether the bytes ended or made no sense.
 */
#ifndef FTH_IO_PARQUET_THRIFT_H
#define FTH_IO_PARQUET_THRIFT_H

#include <stdbool.h>
#include <stdint.h>

typedef enum fth__thrift_fault {
    FTH__THRIFT_GOOD,
    FTH__THRIFT_SHORT, /* the bytes end inside */
    FTH__THRIFT_WRONG
} fth__thrift_fault;

enum {
    FTH__THRIFT_TRUE = 1,
    FTH__THRIFT_FALSE = 2,
    FTH__THRIFT_I8 = 3,
    FTH__THRIFT_I16 = 4,
    FTH__THRIFT_I32 = 5,
    FTH__THRIFT_I64 = 6,
    FTH__THRIFT_F64 = 7,
    FTH__THRIFT_BYTES = 8,
    FTH__THRIFT_LIST = 9,
    FTH__THRIFT_SET = 10,
    FTH__THRIFT_MAP = 11,
    FTH__THRIFT_STRUCT = 12
};

typedef struct fth__thrift {
    const uint8_t *at, *end;
    fth__thrift_fault bad;
} fth__thrift;

typedef struct fth__thrift_field {
    int32_t id; /* starts with 0 */
    int type;
} fth__thrift_field;

/* The next field of a struct; false: its end, or a failure. */
bool fth__thrift_next(fth__thrift *t, fth__thrift_field *f);
/* The value of that field; one of another type is a failure. */
int64_t fth__thrift_int(fth__thrift *t, const fth__thrift_field *f); /* i8 to i64 */
bool fth__thrift_bool(fth__thrift *t, const fth__thrift_field *f);
const char *fth__thrift_bytes(fth__thrift *t, const fth__thrift_field *f, uint64_t *n);
/* The head of a list whose elements are of `type`; its length. */
int64_t fth__thrift_list(fth__thrift *t, const fth__thrift_field *f, int type);
/* Whether the field is a struct, whose fields follow. */
bool fth__thrift_struct(fth__thrift *t, const fth__thrift_field *f);
void fth__thrift_skip(fth__thrift *t, const fth__thrift_field *f);
/* A number of 7 bits a byte, the lowest first. */
uint64_t fth__thrift_varint(fth__thrift *t);
int64_t fth__thrift_zigzag(fth__thrift *t);

#endif
