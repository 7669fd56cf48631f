/* base/thread.h - threads of the engine: a stack that is known.
 *
 * The system's default of 8 MiB holds whole huge pages, and where these are on for everything
 * ("always") a thread that touches its stack takes 2 MiB at once: 16 workers and 16 threads for
 * files took 58 MiB more than was planned. A stack below 2 MiB takes the pages it uses. The
 * largest frame of ours has 100 KiB.
 *
 * Threads: any. Failure: as pthread_create, a number of errno.h; 0 is success.
 */
#ifndef FTH_BASE_THREAD_H
#define FTH_BASE_THREAD_H

#include <pthread.h>

/* The thread sanitizer keeps 0.8 MiB of its own at the top of every stack. Beside that a worker
 * needs room for calls cut into halves: 15 KiB for each halving (run/cut.c). */
#if defined(__SANITIZE_THREAD__)
#define FTH__THREAD_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FTH__THREAD_SANITIZED 1
#endif
#endif
#ifdef FTH__THREAD_SANITIZED
enum { FTH__THREAD_STACK = 4 << 20 };
#else
enum { FTH__THREAD_STACK = 1 << 20 };
#endif

int fth__thread_start(pthread_t *out, void *(*run)(void *arg), void *arg);

#endif
