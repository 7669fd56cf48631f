/* assert.c - the end of a process that broke an invariant of ours. Not part of a release. */
#include "base/assert.h"

#ifndef NDEBUG
#include <stdio.h>
#include <stdlib.h>

void fth__assert_failed(const char *file, int line, const char *condition)
{
    fprintf(stderr, "%s:%d: invariant broken: %s\n", file, line, condition);
    abort();
}
#else
typedef int fth__no_assertions; /* a file of C has at least one declaration */
#endif
