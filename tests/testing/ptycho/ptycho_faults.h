/* testing/ptycho/ptycho_faults.h - verbs of ptycho that run out of memory or of disk at many
 * points. */
#ifndef FATHOM_TESTING_PTYCHO_FAULTS_H
#define FATHOM_TESTING_PTYCHO_FAULTS_H

#include "testing/io/files.h"

#include <fathom/fathom.h>
#include <fathom/files.h>

typedef struct pf_call {
    const fth_verb *verb;
    const char *word[3];
    const char *const *flag; /* pairs of names and values, ended by NULL; NULL: none */
    const char *out;         /* the flag of that name */
    uint64_t memory;         /* 0: 64 MiB */
    int64_t fail_alloc, fail_write;
} pf_call;

/* One run, in a context of its own that nothing stays allocated in. */
fth_status pf_run(pf_call *c, fth_err *err);
/* Every `alloc`-th request, then every `write`-th write, fails until one run gets through; a
 * `write` of 0 leaves those out. Every failure has a status of its kind and a text. `made` is not
 * there after one; NULL: whatever there is may stay. */
void pf_survive(pf_call c, int64_t alloc, int64_t write, const char *made);
/* No temporary file is in the folder. */
void pf_no_remains(const char *folder);

#endif
