/* testing/full.h - how much of a test that has much to try is tried.
 *
 * ./check tries a sample, ./check --long all of it in the release build (FTH_TEST_FULL=yes).
 */
#ifndef FATHOM_TESTING_FULL_H
#define FATHOM_TESTING_FULL_H

#include <stdbool.h>
#include <stdlib.h>

static inline bool t_full(void)
{
    return getenv("FTH_TEST_FULL") != NULL;
}

#endif
