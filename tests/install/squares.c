/* squares.c - a program of somebody else with kernels of its own: every set gives the sum. */
#include "squares.h"

#include <stdio.h>

int main(void)
{
    double x[21];
    int wrong = 0;
    for (int i = 0; i < 21; i++) x[i] = i;
    for (int level = 1; level <= fth_isa_level(); level++) {
        const squares_loops *loops = FTH_ISA_AT(squares, level);
        for (int n = 0; loops && n <= 21; n++)
            wrong += loops->sum(x, n) != (double)(n - 1) * n * (2 * n - 1) / 6;
    }
    printf("level %d: %g\n", fth_isa_level(), FTH_ISA_BEST(squares)->sum(x, 21));
    return wrong;
}
