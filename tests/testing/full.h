/* testing/full.h - how much of a test that has much to try is tried.
 *
 * ./check tries a sample, a smaller one under a sanitizer and where a device is emulated; ./check
 * --long tries all of it in the release build (FTH_TEST_FULL=yes), ./check --gpu on the card.
 */
#ifndef FATHOM_TESTING_FULL_H
#define FATHOM_TESTING_FULL_H

#include "testing/test.h"

static inline bool t_full(void)
{
    return getenv("FTH_TEST_FULL") || (getenv("FATHOM_TEST_DEVICE") && !t_slowed());
}

/* One of how many is tried; `few` is for where everything is slow. */
static inline int t_one_in(int some, int few)
{
    return t_full() ? 1 : T_SANITIZED ? few : some;
}

/* Whether it is few because everything is slow. */
static inline bool t_few(void)
{
    return t_one_in(1, 2) > 1;
}

#endif
