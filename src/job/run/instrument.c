/* instrument.c - validate the struct of an instrument before it is used. */
#include "job/run/graph.h"

#include <string.h>

bool fth__stage_has_flag(const fth_stage *stage, const char *name)
{
    for (const fth_flag *f = stage->flag; f && f->name; f++)
        if (strcmp(f->name, name) == 0) return true;
    return false;
}

static const char *find_fault(const fth_instrument *in, int k, char *text, size_t bytes)
{
    const fth_stage *stage = &in->stage[k];
    if (stage->algorithm < 0) return "the number of its algorithm is negative";
    for (int i = 0; i < k; i++)
        if (strcmp(in->stage[i].name, stage->name) == 0) return "there are two of this name";
    for (const char *name = stage->after ? stage->after : ""; *name;) {
        const size_t n = strcspn(name, " ");
        bool known = false;
        for (int i = 0; i < k; i++)
            known = known ||
                    (strlen(in->stage[i].name) == n && strncmp(in->stage[i].name, name, n) == 0);
        if (!known) {
            snprintf(text, bytes, "it comes after '%.*s', which is no stage before it", (int)n,
                     name);
            return text;
        }
        name += n;
        name += strspn(name, " ");
    }
    if (!stage->keeps || fth__stage_has_flag(stage, "force")) return NULL;
    snprintf(text, bytes,
             "it keeps partial results (%s) and has no flag 'force' to compute without them",
             stage->keeps);
    return text;
}

/* A verb that ignores a flag, such as --plan, would compute and write where only a plan was wanted.
 */
static fth_status check_verbs(const fth_instrument *in, fth_err *err)
{
    for (int k = 0; k < in->n_verbs; k++) {
        const fth_verb *v = in->verb[k];
        if (v && v->name && v->run && v->heeds) continue;
        FTH_FAIL(err, FTH_E_USAGE, "verb '%s' of instrument '%s' is refused: %s",
                 v && v->name ? v->name : "", in->name,
                 v && v->name && v->run ? "it does not say which flags it heeds"
                                        : "it has no name, or nothing to run");
        fth_err_hint(err, "set .heeds to the words of 'seed plan json quiet' that it heeds");
        return FTH_E_USAGE;
    }
    return FTH_OK;
}

fth_status fth_instrument_check(const fth_instrument *in, fth_err *err)
{
    char text[200];
    if (!in || !in->name || !in->schema || in->n_stages < 0 || (in->n_stages > 0 && !in->stage))
        return FTH_FAIL(err, FTH_E_USAGE, "an instrument needs a name, a table of keys and stages");
    for (int k = 0; k < in->n_stages; k++) {
        if (!in->stage[k].name || !in->stage[k].name[0])
            return FTH_FAIL(err, FTH_E_USAGE, "stage %d of instrument '%s' has no name", k + 1,
                            in->name);
        const char *fault = find_fault(in, k, text, sizeof text);
        if (!fault) continue;
        FTH_FAIL(err, FTH_E_USAGE, "stage '%s' of instrument '%s' is refused: %s",
                 in->stage[k].name, in->name, fault);
        fth_err_hint(err, "docs/instruments.md says what a stage has");
        return FTH_E_USAGE;
    }
    bool known = in->model_key == NULL;
    for (int64_t k = 0; !known && k < in->schema->n_keys; k++)
        known = strcmp(in->schema->key[k].name, in->model_key) == 0;
    if (!known)
        return FTH_FAIL(err, FTH_E_USAGE, "model_key of instrument '%s' is '%s', which is no key",
                        in->name, in->model_key);
    return check_verbs(in, err);
}
