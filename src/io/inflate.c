/* inflate.c - the only user of libdeflate. */
#include "io/inflate.h"

#include <libdeflate.h>

fth__unpacker *fth__unpacker_create(void)
{
    return libdeflate_alloc_decompressor();
}

void fth__unpacker_destroy(fth__unpacker *u)
{
    libdeflate_free_decompressor(u);
}

bool fth__unpacker_zlib(fth__unpacker *u, const void *in, uint64_t n_in, void *out, uint64_t n_out)
{
    return libdeflate_zlib_decompress(u, in, n_in, out, n_out, NULL) == LIBDEFLATE_SUCCESS;
}
