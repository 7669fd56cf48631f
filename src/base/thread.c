/* thread.c - see thread.h. */
#include "base/thread.h"

int fth__thread_start(pthread_t *out, void *(*run)(void *arg), void *arg)
{
    pthread_attr_t attr;
    int why = pthread_attr_init(&attr);
    if (why != 0) return why;
    why = pthread_attr_setstacksize(&attr, FTH__THREAD_STACK);
    if (why == 0) why = pthread_create(out, &attr, run, arg);
    pthread_attr_destroy(&attr);
    return why;
}
