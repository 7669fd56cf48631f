/* pickle.h - the values in a pickle that torch.save wrote, without executing anything.
 *
 * Only the opcodes that torch.save uses are known, and of functions only those that rebuild
 * tensors, parameters and ordered dictionaries, which are recognised by name and not called.
 * Everything else is refused by its name. Memory is a small multiple of the bytes that are read.
 */
#ifndef SPATIAL_PICKLE_H
#define SPATIAL_PICKLE_H

#include <fathom/fathom.h>

typedef enum sp_pickle_kind {
    SP_PICKLE_NONE,
    SP_PICKLE_BOOL,
    SP_PICKLE_INT,
    SP_PICKLE_REAL,
    SP_PICKLE_TEXT,
    SP_PICKLE_TUPLE, /* and lists: its items */
    SP_PICKLE_DICT,  /* keys and values in turn */
    SP_PICKLE_NAME,  /* of a function or type, as "module name" */
    SP_PICKLE_STORAGE,
    SP_PICKLE_TENSOR,
    SP_PICKLE_KINDS
} sp_pickle_kind;

typedef struct sp_pickle sp_pickle;
/* A value: index of its node; 0 is none. */
typedef int32_t sp_value;

/* `name` is named in errors; `data` outlives the pickle. */
fth_status sp_pickle_read(sp_pickle **out, fth_mem *mem, const char *name, const void *data,
                          uint64_t bytes, fth_err *err);
void sp_pickle_free(sp_pickle *p); /* NULL is allowed */
sp_value sp_pickle_root(const sp_pickle *p);
sp_pickle_kind sp_pickle_kind_of(const sp_pickle *p, sp_value v); /* of 0: SP_PICKLE_NONE */
/* The value of a text key of a dictionary; 0: none. */
sp_value sp_pickle_get(const sp_pickle *p, sp_value dict, const char *key);
/* Item i of a tuple or list; 0: none. */
sp_value sp_pickle_item(const sp_pickle *p, sp_value list, int64_t i);
/* false: not a number. Booleans are 0 and 1. */
bool sp_pickle_real(const sp_pickle *p, sp_value v, double *out);
/* false: not a whole number. */
bool sp_pickle_int(const sp_pickle *p, sp_value v, int64_t *out);
/* Text, not terminated; NULL: something else. */
const char *sp_pickle_text(const sp_pickle *p, sp_value v, uint64_t *bytes);

/* A tensor in a storage, element (i, j, ..) at offset + i stride[0] + j stride[1] + ..; every
 * element lies inside. */
typedef struct sp_pickle_tensor {
    char key[24];  /* name of the storage */
    char type[24]; /* "FloatStorage" */
    int64_t elements, offset;
    int n_axes;
    int64_t size[FTH_MAX_AXES], stride[FTH_MAX_AXES];
} sp_pickle_tensor;
/* false: not a tensor, or one that does not fit its storage. */
bool sp_pickle_tensor_of(const sp_pickle *p, sp_value v, sp_pickle_tensor *out);

#endif
