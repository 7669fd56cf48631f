/* checkpoint.h - what the writer and the reader of a model file share. */
#ifndef SPATIAL_CHECKPOINT_H
#define SPATIAL_CHECKPOINT_H

#include "slots.h"

#include <string.h>

/* Prefix of training settings in the metadata; settings of the model have none. */
#define SP_TRAIN_PREFIX "train."
#define SP_SEAL "header_hash" /* of all metadata but itself and what belongs to the container */
#define SP_EQUIDISTANT "equidistant"

/* The container's own entries, and the seal, are not sealed: tensors have hashes, and axes are
 * compared with what they have to be. */
static inline bool sp_is_sealed(const char *key)
{
    return strncmp(key, "axes.", 5) != 0 && strncmp(key, "xxh64.", 6) != 0 &&
           strcmp(key, SP_SEAL) != 0;
}

/* The seal is the sum over the entries, so their order does not matter. */
static inline uint64_t sp_seal_entry(const char *key, const char *value)
{
    return fth_hash_bytes(value, strlen(value), fth_hash_bytes(key, strlen(key), 0));
}

#endif
