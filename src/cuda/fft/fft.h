/* cuda/fft/fft.h - one pass of a Fourier transform on the device: every line along one axis.
 *
 * Every line is transformed by the same instructions whatever lies beside it in a call, so the way
 * an operation is cut into pieces cannot change a bit. How lines are transformed depends on their
 * length and dtype alone:
 *
 *   fft_lines.cu  powers of two from 8 to 4096, eight numbers in the registers of a thread
 *   fft_any.cu    every other length: in shared memory where it fits, else through scratch
 *   fft_chirp.cu  lengths with a prime factor above 127
 *   fft_image.cu  square images of a power of two, both axes at once
 */
#ifndef FTH_CUDA_FFT_H
#define FTH_CUDA_FFT_H

#include "cuda/walk/walk.cuh"

/* What a line is made of in memory: complex numbers; reals; frequencies 0 to n/2 of a real line. */
typedef enum fth__fft_form { FTH__FFT_COMPLEX, FTH__FFT_REAL, FTH__FFT_HALF } fth__fft_form;

typedef struct fth__fft_pass {
    fth__walk line; /* places of a line in `from` and `to`, in elements */
    const void *from;
    void *to;            /* may be `from` where both are complex */
    int64_t s_in, s_out; /* elements between neighbours of a line */
    int64_t n;           /* points */
    int64_t n_out;       /* elements of a line that are written */
    fth__fft_form in, out;
    bool wide;    /* f64 */
    bool inverse; /* the other sign */
    bool near;    /* neighbours of a line are neighbours in memory; else those of other lines are */
    double scale; /* what results are multiplied by */
} fth__fft_pass;

/* ---- lines ---- */

bool fth__fft_lines_fit(int64_t n);
void fth__fft_lines(const fth__fft_pass *p, cudaStream_t stream);

/* Scratch for `lines` lines of any other length. */
uint64_t fth__fft_any_bytes(int64_t n, bool wide, int64_t lines);
void fth__fft_any(const fth__fft_pass *p, void *scratch, cudaStream_t stream);
/* Lengths with a large prime factor, which the two above leave to these. */
bool fth__fft_is_chirp(int64_t n);
uint64_t fth__fft_chirp_bytes(int64_t n, int64_t lines);
void fth__fft_chirp(const fth__fft_pass *p, void *scratch, cudaStream_t stream);
/* Roots 0 to n-1; and with them lines of n numbers of f64 that lie at x without gaps, by way of y:
 * which of the two they lie at then. */
void fth__fft_roots(double2 *roots, int64_t n, cudaStream_t stream);
double2 *fth__fft_stages_run(const double2 *roots, int64_t n, int64_t lines, double2 *x, double2 *y,
                             cudaStream_t stream);
/* Zeros: the spectrum of no points. */
void fth__fft_clear(const fth__fft_pass *p, cudaStream_t stream);

/* ---- images ---- */

/* Square images of complex numbers; rows are neighbours in memory. */
typedef struct fth__fft_images {
    fth__walk image; /* places in `from` and `to`, in elements */
    const void *from;
    void *to;
    int64_t row_in, row_out; /* elements between rows */
    int64_t col_in, col_out; /* and between columns */
    int64_t n;               /* points along both */
    bool wide, inverse;
    double scale;
} fth__fft_images;

bool fth__fft_images_fit(int64_t rows, int64_t columns);
uint64_t fth__fft_images_bytes(int64_t n, int64_t images);
fth_status fth__fft_images_run(const fth__fft_images *p, void *scratch, cudaStream_t stream,
                               fth_err *err);

#endif
