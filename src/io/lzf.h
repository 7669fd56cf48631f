/* io/lzf.h - the LZF packing of h5py, unpacked. */
#ifndef FTH_IO_LZF_H
#define FTH_IO_LZF_H

#include <stddef.h>

/* The bytes that a stream unpacks to, by its commands alone; 0 when it is damaged. */
size_t fth__lzf_size(const unsigned char *in, size_t bytes);
/* Returns the bytes made, or 0 when the input is damaged or does not fit in `room`. */
size_t fth__lzf_unpack(const unsigned char *in, size_t bytes, unsigned char *out, size_t room);

#endif
