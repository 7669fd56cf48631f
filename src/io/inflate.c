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

bool fth__unpacker_whole(fth__unpacker *u, bool gzip, const void *in, uint64_t n_in, void *out,
                         uint64_t n_out)
{
    size_t used = 0;
    const enum libdeflate_result got =
        gzip ? libdeflate_gzip_decompress_ex(u, in, n_in, out, n_out, &used, NULL)
             : libdeflate_zlib_decompress_ex(u, in, n_in, out, n_out, &used, NULL);
    return got == LIBDEFLATE_SUCCESS && used == n_in;
}
