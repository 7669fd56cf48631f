/* cpu/onednn.h - the one door to oneDNN: forward convolutions of one tile, channels innermost.
 *
 * The library is opened when it is first needed; without it nothing is ready and the caller has
 * another way. One thread, workspace from the caller, implementation fixed by the shape.
 *
 * Threads: any; an open convolution belongs to the thread that opened it.
 */
#ifndef FTH_CPU_ONEDNN_H
#define FTH_CPU_ONEDNN_H

#include <fathom/base.h>

/* out[y x o] = sum of in[y*stride+ky*dilation, x*stride+kx*dilation-pad_left, c] w[o c ky kx]; the
 * rows that padding needs are in `in` already. f32. */
typedef struct fth__onednn_shape {
    int64_t chan, out_chan, rows_in, width_in, rows, width;
    int64_t ky, kx, stride, dilation, pad_left, pad_right;
} fth__onednn_shape;

typedef struct fth__onednn_conv {
    void *engine, *stream, *conv_desc, *conv, *pack_desc, *pack, *memory[6];
    uint64_t weights_bytes;   /* of the weights in the library's own order */
    uint64_t workspace_bytes; /* for packing and for running               */
    int threads;              /* of the caller, put back by close          */
} fth__onednn_conv;

/* *can false: the library is not there, or has nothing better than a plain loop for this shape,
 * which will be so the next time as well. An error (out of memory, most likely) must not count as
 * such an answer: the other way gives other last bits. Close what was opened, on the same thread.
 */
fth_status fth__onednn_open(fth__onednn_conv *c, const fth__onednn_shape *shape, bool *can,
                            fth_err *err);
/* Weights [o c ky kx], dense, into the library's order. */
fth_status fth__onednn_pack(fth__onednn_conv *c, void *plain, void *packed, void *workspace,
                            fth_err *err);
fth_status fth__onednn_run(fth__onednn_conv *c, void *in, void *packed, void *out, void *workspace,
                           fth_err *err);
void fth__onednn_close(fth__onednn_conv *c);

#endif
