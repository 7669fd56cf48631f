/* planes.h - how sharp each plane is, and how alike neighbours are: sums, and what follows. */
#ifndef FOCUS_OPS_PLANES_H
#define FOCUS_OPS_PLANES_H

#include "energy.h"

/* Sums over a row of a plane, or over all of it: of the energy (integers: eight times), of the
 * values, their squares, and their products with the plane before it that exists. Exact i64 for
 * integers, f64 for floats. */
enum { FO_SUM_ENERGY, FO_SUM_VALUE, FO_SUM_SQUARE, FO_SUM_BEFORE, FO_SUMS };

/* [stack z y sum]: the LoG of size 3 with this border. `sum` names an axis of FO_SUMS elements. */
fth_val fo_plane_sums_(fth_site site, fth_val stacks, fth_val present, fo_border border,
                       const char *sum);
#define fo_plane_sums(stacks, present, border, sum)                                                \
    fo_plane_sums_(FTH_HERE, (stacks), (present), (border), (sum))

typedef struct fo_sums_attr {
    fo_energy energy;
    int32_t sum; /* axis id */
} fo_sums_attr;

/* State: a row of the plane before, spread over the sums of the row, and after it whether there is
 * one. Bytes of the row, rounded up, and of the state of one sum. */
static inline uint64_t fo_sums_row(const fth_node *node)
{
    return ((uint64_t)node->in[0].size[3] * (uint64_t)fth_dtype_size(node->in[0].dtype) + 7) / 8 *
           8;
}
static inline uint64_t fo_sums_state(const fth_node *node)
{
    return (fo_sums_row(node) / 8 + 1 + FO_SUMS - 1) / FO_SUMS * 8;
}

/* Sums over rows become those of planes, [stack z sum] i64: exact, so in any order. */
fth_val fo_plane_totals_(fth_site site, fth_val rows);
#define fo_plane_totals(rows) fo_plane_totals_(FTH_HERE, (rows))

typedef struct fo_sums_loops {
    void (*u8)(const uint8_t *v, const uint8_t *before, int64_t n, int64_t *sum);
    void (*u16)(const uint16_t *v, const uint16_t *before, int64_t n, int64_t *sum);
} fo_sums_loops; /* before NULL: there is none; sum[FO_SUMS], but for the energy */
FTH_ISA_DECLARE(const fo_sums_loops, fo_sums_loops);

/* Which planes are sharp and stable, from what is known of them. Rules by number, in the order of
 * fo_reject: none, peak relative, correlation, hybrid, auto. */
typedef struct fo_judge_attr {
    double alpha, corr;
    double pixels; /* of a plane */
    int32_t rule, integers;
} fo_judge_attr;
/* In: sums [stack z sum], present [stack z]. Out, each [stack z]: kept u8, mean energy f64,
 * correlation with the next plane that exists f64 (NaN: none). */
enum { FO_JUDGE_KEPT, FO_JUDGE_MEAN, FO_JUDGE_CORR, FO_JUDGES };
fth_val fo_judge_(fth_site site, fth_val sums, fth_val present, const fo_judge_attr *attr);
#define fo_judge(sums, present, attr) fo_judge_(FTH_HERE, (sums), (present), (attr))
/* f64 [stack stat]: the numbers of fo_stat up to the median correlation, then the four of `range`
 * (lo, hi, saturated, constant; f64 [stack]). */
enum { FO_JUDGED = 9, FO_SUMMARY = 13 };
fth_val fo_summary_(fth_site site, fth_val mean, fth_val corr, fth_val present,
                    const fth_val range[4], const char *stat, const fo_judge_attr *attr);
#define fo_summary(mean, corr, present, range, stat, attr)                                         \
    fo_summary_(FTH_HERE, (mean), (corr), (present), (range), (stat), (attr))

#endif
