/* facts.h - names with values, as a checkpoint has them in its metadata. */
#ifndef SPLAT_TRAIN_FACTS_H
#define SPLAT_TRAIN_FACTS_H

#include <fathom/fathom.h>

enum { GS_FACTS = 192, GS_FACT_NAME = 48, GS_FACT_VALUE = 256 };

typedef struct gs_facts {
    int n;
    char key[GS_FACTS][GS_FACT_NAME], value[GS_FACTS][GS_FACT_VALUE];
    fth_file_meta meta[GS_FACTS]; /* both, for the file */
} gs_facts;

/* What does not fit is cut; a cleared one is empty. */
void gs_facts_text(gs_facts *f, const char *key, const char *value);
void gs_facts_real(gs_facts *f, const char *key, double v);
void gs_facts_count(gs_facts *f, const char *key, int64_t v);
void gs_facts_hash(gs_facts *f, const char *key, uint64_t v);

#endif
