/* base/both.h - FTH__BOTH marks small functions that code for a GPU uses too: for a C compiler it
 * is nothing, for nvcc the function exists on both sides. */
#ifndef FTH_BASE_BOTH_H
#define FTH_BASE_BOTH_H

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define FTH__BOTH __host__ __device__
#else
#define FTH__BOTH
#endif

#endif
