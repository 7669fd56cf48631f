/* watch.h - how long each stack is read, encoded and written, and by how many threads at once.
 *
 * Threads take a turn before they begin and end it when they are done. A watch counts turns, makes
 * threads wait where only some may work at once, adds up what each stack took, and puts every turn
 * into a timeline.
 *
 * Ownership: fo_watch_destroy. Threads: any number. A NULL watch lets everybody work and keeps
 * nothing.
 */
#ifndef FOCUS_WATCH_WATCH_H
#define FOCUS_WATCH_WATCH_H

#include <fathom/fathom.h>

typedef enum fo_phase { FO_READ, FO_ENCODE, FO_WRITE, FO_PHASES } fo_phase;

typedef struct fo_watch fo_watch;
typedef struct fo_watch_options {
    int64_t n_stacks;
    int most[FO_PHASES]; /* threads at once; 0: any number */
    fth_trace *trace;    /* NULL: none */
    /* Of a stack, for the timeline; may be NULL. */
    void (*name)(void *user, int64_t stack, char *text, size_t bytes);
    /* All that fo_watch_expect announced of a stack has arrived; may be NULL. From any thread, one
     * at a time. */
    void (*whole)(void *user, int64_t stack);
    void *user;
} fo_watch_options;
fth_status fo_watch_create(fo_watch **out, fth_mem *mem, const fo_watch_options *opt, fth_err *err);
void fo_watch_destroy(fo_watch *w); /* NULL is allowed */

typedef struct fo_turn {
    fo_phase phase;
    int slot;
    int64_t stack;
    int64_t start_ns; /* of the timeline */
    double start_s;
} fo_turn;
/* Wait for a turn. */
fo_turn fo_watch_begin(fo_watch *w, fo_phase phase, int64_t stack);
void fo_watch_end(fo_watch *w, const fo_turn *turn, uint64_t bytes);

/* What a stack took. Seconds are those of all threads together, without waiting. */
typedef struct fo_stack_times {
    struct {
        double seconds;
        uint64_t bytes;
    } phase[FO_PHASES];
    int64_t start_ns, end_ns; /* of its first and last turn, in the timeline */
    int64_t parts;            /* that are still to arrive */
} fo_stack_times;
/* Forget what a stack took: it begins anew, and is whole after so many parts. */
void fo_watch_expect(fo_watch *w, int64_t stack, int64_t parts);
void fo_watch_arrive(fo_watch *w, int64_t stack, int64_t parts);
fo_stack_times fo_watch_times(const fo_watch *w, int64_t stack);

/* A source [stack ...] whose reads are turns, stack by stack. */
typedef struct fo_watched {
    fo_watch *watch;
    fth_source source;
    const int64_t *chosen; /* numbers of the stacks */
} fo_watched;
/* `to` lives as long as the source. The source itself without a watch. */
fth_source fo_watch_source(fo_watch *w, const fth_source *source, const int64_t *chosen,
                           fo_watched *to);

#endif
