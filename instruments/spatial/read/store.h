/* store.h - where an AnnData is kept: an HDF5 file, or a folder of Zarr.
 *
 * Groups, arrays and attributes have the same names and meaning in both, so everything that reads
 * an AnnData asks here. A SpatialData store is a folder of Zarr with AnnData under tables/.
 */
#ifndef SPATIAL_STORE_H
#define SPATIAL_STORE_H

#include "../spatial.h"

/* Where a table of SpatialData says what it annotates. */
#define SP_REGIONS "/uns/spatialdata_attrs/region"
#define SP_REGION_KEY "/uns/spatialdata_attrs/region_key"
#define SP_INSTANCE_KEY "/uns/spatialdata_attrs/instance_key"

typedef struct sp_store {
    fth_mem *mem;
    fth_h5 *h5;            /* NULL: it is a folder */
    char folder[FTH_PATH]; /* "": it is a file */
} sp_store;

static inline bool sp_store_is_open(const sp_store *s)
{
    return s->h5 || s->folder[0];
}

/* The same as the functions fth_h5_... of these names. */
fth_h5_kind sp_store_kind(const sp_store *s, const char *object);
fth_status sp_store_list(const sp_store *s, const char *group, fth_texts **out, fth_err *err);
fth_status sp_store_fields(const sp_store *s, const char *object, fth_texts **out, fth_err *err);
fth_status sp_store_source(const sp_store *s, const char *object, const char *field,
                           fth_source *out, fth_err *err);
fth_status sp_store_strings(const sp_store *s, const char *object, const char *field,
                            fth_texts **out, fth_err *err);
bool sp_store_attr_exists(const sp_store *s, const char *object, const char *name);
fth_status sp_store_attr_text(const sp_store *s, const char *object, const char *name,
                              fth_texts **out, fth_err *err);
fth_status sp_store_attr_i64(const sp_store *s, const char *object, const char *name, int64_t *to,
                             int64_t room, int64_t *n, fth_err *err);
fth_status sp_store_attr_reference(const sp_store *s, const char *object, const char *name,
                                   char *place, size_t bytes, fth_err *err);

/* The positive number that a dataset of a group is; 0: it is none. Fails for want of memory. */
fth_status sp_store_number(const sp_store *s, const char *group, const char *name, double *out,
                           fth_err *err);

/* The folder of an AnnData in a folder of Zarr: the folder itself, or a table of SpatialData, which
 * `table` names where there are several; NULL: it is not named. */
fth_status sp_store_find(fth_mem *mem, const char *path, const char *table, char folder[FTH_PATH],
                         fth_err *err);
/* Tables of a SpatialData store; NULL: it is none. */
fth_status sp_store_tables(fth_mem *mem, const char *path, fth_texts **out, fth_err *err);
/* A hash of the names and bytes of all files of a folder, and their bytes together. */
fth_status sp_store_hash(fth_mem *mem, const char *folder, uint64_t *hash, int64_t *bytes,
                         fth_err *err);

#endif
