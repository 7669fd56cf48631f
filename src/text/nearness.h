/* text/nearness.h - how far a written name is from a known one: for "did you mean".
 */
#ifndef FTH_TEXT_NEARNESS_H
#define FTH_TEXT_NEARNESS_H

#include <stddef.h>

enum { FTH__FAR = 256 }; /* of names too long to compare; no others are so far apart */
/* Half edits between two names: an inserted, missing, changed or swapped letter is two; names that
 * differ only by case, or by - and _, are one apart. */
int fth__distance(const char *a, size_t n_a, const char *b, size_t n_b);
/* The most that is still near to a name of n bytes: one edit in three letters; of a very short name
 * its case alone. */
int fth__near_enough(size_t n);

#endif
