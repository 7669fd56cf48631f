/* nearness.c - how far a name is from another, for hints; see nearness.h. */
#include "text/nearness.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum { NEAR_LONGEST = 64 }; /* longer names get no suggestion; ours have up to some 40 bytes */

/* A changed case, or - for _, is no edit. */
static int change_cost(char a, char b)
{
    const bool dashes = (a == '-' || a == '_') && (b == '-' || b == '_');
    return dashes || tolower((unsigned char)a) == tolower((unsigned char)b) ? 0 : 2;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

int fth__distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
    int row[3][NEAR_LONGEST + 1] = {{0}}; /* two letters ago, one letter ago, now */
    if (n_a > NEAR_LONGEST || n_b > NEAR_LONGEST) return FTH__FAR;
    for (size_t j = 0; j <= n_b; j++) row[2][j] = (int)(2 * j);
    for (size_t i = 1; i <= n_a; i++) {
        memcpy(row[0], row[1], sizeof row[0]);
        memcpy(row[1], row[2], sizeof row[1]);
        row[2][0] = (int)(2 * i);
        for (size_t j = 1; j <= n_b; j++) {
            int d = row[1][j - 1] + change_cost(a[i - 1], b[j - 1]);
            d = least(d, least(row[1][j], row[2][j - 1]) + 2);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d = least(d, row[0][j - 2] + 2);
            row[2][j] = d;
        }
    }
    const bool same = n_a == n_b && memcmp(a, b, n_a) == 0;
    return row[2][n_b] == 0 && !same ? 1 : row[2][n_b];
}

int fth__near_enough(size_t n)
{
    return n < 3 ? 1 : n < 6 ? 2 : (int)(2 * n / 3);
}
