/* facts.c - see facts.h. */
#include "facts.h"

#include <inttypes.h>
#include <stdio.h>

void gs_facts_text(gs_facts *f, const char *key, const char *value)
{
    if (f->n == GS_FACTS) return;
    snprintf(f->key[f->n], GS_FACT_NAME, "%s", key);
    snprintf(f->value[f->n], GS_FACT_VALUE, "%s", value);
    f->meta[f->n] = (fth_file_meta){f->key[f->n], f->value[f->n]};
    f->n++;
}

void gs_facts_real(gs_facts *f, const char *key, double v)
{
    char text[64];
    gs_facts_text(f, key, fth_number_format(text, sizeof text, v, 17));
}

void gs_facts_count(gs_facts *f, const char *key, int64_t v)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, v);
    gs_facts_text(f, key, text);
}

void gs_facts_hash(gs_facts *f, const char *key, uint64_t v)
{
    char text[32];
    snprintf(text, sizeof text, "%016" PRIx64, v);
    gs_facts_text(f, key, text);
}
