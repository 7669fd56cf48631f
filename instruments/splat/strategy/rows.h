/* rows.h - all arrays over Gaussians in one object, so that their lengths stay equal.
 *
 * A parameter, and with Adam its two moments, for each attribute; with statistics, how often a row
 * was visible and the sum of its gradients on the screen. They lie in ranges that grow where they
 * are: rows are appended without a copy and closed up in place, and the ledger counts what is
 * there. A graph over them is made anew when n changed.
 *
 * Ownership: gs_rows_free gives back what they hold.
 */
#ifndef SPLAT_STRATEGY_ROWS_H
#define SPLAT_STRATEGY_ROWS_H

#include "../model/model.h"
#include "marks.h"

#include <fathom/graph.h>

/* Flags: with moments, with statistics, on the device of the context alone. */
enum { GS_ROWS_ADAM = 1, GS_ROWS_DENSIFY = 2, GS_ROWS_DEVICE = 4 };
typedef enum gs_part { GS_VALUE, GS_FIRST, GS_SECOND, GS_PARTS } gs_part;

typedef struct gs_rows {
    fth_context *context;
    fth_mem *mem;    /* the ledger that counts them */
    int64_t n, most; /* rows there are, and may be */
    int degree;
    unsigned flags;                              /* as they are now */
    fth_tensor *tensor[GS_PARTS][GS_ATTRIBUTES]; /* NULL: moments without Adam */
    fth_tensor *densify; /* [g 2]: times visible, sum of gradients; NULL: none */
    /* On a device: words of marks and counts before their blocks, of up to two kinds at once. They
     * have no rows between refinements, and are made with the first (device.c). */
    fth_tensor *marks[2][2];
    /* On a device, so far: the most of its ledger that plans over them said, and that it held; a
     * run begins a peak of its own. */
    uint64_t planned, held;
    /* Called after each run over them on a device, while all that it used is held; NULL: nobody. */
    void (*peek)(void *arg);
    void *peek_arg;
} gs_rows;

/* GS_ROWS_DEVICE where a device of the context can hold rows alone, else 0. */
unsigned gs_rows_place(fth_context *context);
/* n rows of 0. */
fth_status gs_rows_create(gs_rows *rows, fth_context *context, int64_t n, int64_t most, int degree,
                          unsigned flags, fth_err *err);
/* As many as a model has, with its parameters. `most` is at least that. */
fth_status gs_rows_load(gs_rows *rows, fth_context *context, const gs_model *m, int64_t most,
                        unsigned flags, fth_err *err);
void gs_rows_free(gs_rows *rows); /* a cleared one is allowed */

/* The parameters as a model, for files and frames: borrowed until n changes, never freed. Of rows
 * on a device alone it has no memory, only tensors. FTH_E_DEVICE...: a device did not answer. */
fth_status gs_rows_model(const gs_rows *rows, gs_model *m, fth_err *err);
/* The same for rows on a device alone: a copy, which the caller frees. */
fth_status gs_rows_fetch(const gs_rows *rows, gs_model *m, fth_err *err);
/* Parameters of rows [from, from + n) to the first rows of a model that has room for them. */
fth_status gs_rows_get(const gs_rows *rows, int64_t from, int64_t n, const gs_model *to,
                       fth_err *err);
/* How many numbers of each parameter are not finite. */
fth_status gs_rows_count_bad(gs_rows *rows, int64_t count[GS_ATTRIBUTES], fth_err *err);
/* Memory of all arrays on the host, as new as on a device. NULL where there is none. FTH_E_USAGE:
 * they are on a device alone. */
typedef struct gs_rows_memory {
    float *at[GS_PARTS][GS_ATTRIBUTES], *densify;
} gs_rows_memory;
fth_status gs_rows_open(const gs_rows *rows, gs_rows_memory *m, fth_err *err);
/* The parameters of row `to` are those of row `from`; and the moments of a row are 0. */
void gs_row_copy(const gs_rows_memory *m, int degree, int64_t to, int64_t from);
void gs_row_clear_moments(const gs_rows_memory *m, int degree, int64_t row);

/* So many rows of 0 more; nothing moves. On failure nothing changed. */
fth_status gs_rows_append(gs_rows *rows, int64_t count, fth_err *err);
/* Remove marked rows (`gone` is counted and about rows->n rows); the others keep their order, and
 * move down where they lie. */
fth_status gs_rows_compact(gs_rows *rows, const gs_marks *gone, fth_err *err);
/* Keep the first n rows. */
fth_status gs_rows_forget(gs_rows *rows, int64_t n, fth_err *err);
/* Statistics of 0 for all rows; made if there were none. */
fth_status gs_rows_begin_densify(gs_rows *rows, fth_err *err);
/* Forget statistics and their memory, after the last refinement. */
void gs_rows_end_densify(gs_rows *rows);

/* ---- memory ---- */

/* What the ledger counts for n rows reserved for `most`. */
uint64_t gs_rows_bytes(const fth_mem *mem, int64_t most, int degree, unsigned flags, int64_t n);
/* How many rows fit in so many bytes, at most `most`: for `max_cap: auto`. */
int64_t gs_rows_fit(const fth_mem *mem, int64_t most, int degree, unsigned flags, uint64_t bytes);

/* Of so many rows to append, those that the budget has room for: bytes(arg, more) is what the
 * ledger will count for `more` of them with all that is needed meanwhile, and what it counts of
 * that now is `held`. A lower number is told to the log. */
int64_t gs_rows_afford(const gs_rows *rows, int64_t wanted, uint64_t held,
                       uint64_t (*bytes)(const void *arg, int64_t more), const void *arg);

/* ---- work over rows ---- */

/* fn(arg, from, to) over all of [0, n) in whole blocks on the workers. It always completes: rows
 * changed in place cannot be left half done, so a cancelled loop is finished here. */
void gs_rows_loop(fth_context *context, const char *name, int64_t n,
                  void (*fn)(void *arg, int64_t from, int64_t to), void *arg);

/* gs_marks_count on the workers. */
void gs_rows_count_marks(fth_context *context, gs_marks *m);

#endif
