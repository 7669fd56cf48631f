/* fuzz_config.c - any bytes as a config: what passes must survive its canonical text and its
 * layout.
 *
 * The first line of the input, when it starts with '=', is one --set.
 * seconds: 5 */
#include "testing/io/fuzz.h"
#include "testing/job/config_table.h"

#include <stdlib.h>

/* What one of the functions that are like snprintf gives, to be freed. */
static char *text_of(const fth_config *cfg, bool layout)
{
    const size_t n =
        layout ? fth_config_layout(cfg, NULL, NULL, NULL, 0) : fth_config_canonical(cfg, NULL, 0);
    char *out = malloc(n + 1);
    if (!out) abort();
    const size_t again = layout ? fth_config_layout(cfg, NULL, NULL, out, n + 1)
                                : fth_config_canonical(cfg, out, n + 1);
    if (again != n || strlen(out) != n) abort();
    return out;
}

/* The canonical text of a config, and its layout; NULL when it has mistakes. */
static char *canonical_of(fth_mem *mem, const char *set, const char *text, size_t bytes,
                          char **layout)
{
    fth_config *cfg = NULL;
    char *out = NULL;
    if (fth_config_create(&cfg, mem, NULL) != FTH_OK) abort();
    bool good = fth_config_parse(cfg, "fuzz", text, bytes, NULL) == FTH_OK;
    if (good && set) good = fth_config_set(cfg, set, NULL) == FTH_OK;
    if (good && fth_config_check(cfg, &ct_schema, &ct_options, NULL) == FTH_OK) {
        out = text_of(cfg, false);
        if (layout) *layout = text_of(cfg, true);
    }
    fth_config_mistake m;
    for (int64_t i = 0; fth_config_get_mistake(cfg, i, &m); i++) {
        char line[200];
        fth_config_mistake_format(&m, line, sizeof line);
        if (out && !m.notice) abort();
    }
    if (fth_config_destroy(cfg, NULL) != FTH_OK) abort();
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fth_mem_options opt;
    fth_mem_options_default(&opt);
    opt.budget_bytes = 1 << 20;
    fth_mem *mem = NULL;
    if (fth_mem_create(&mem, &opt, NULL) != FTH_OK) abort();
    const char *text = (const char *)data;
    char set[100] = "";
    if (size > 0 && text[0] == '=') {
        const char *end = memchr(text, '\n', size);
        const size_t n = end ? (size_t)(end - text) : size;
        if (n < sizeof set) memcpy(set, text + 1, n > 0 ? n - 1 : 0);
        text += n;
        size -= n;
    }
    char *layout = NULL, *once = canonical_of(mem, set[0] ? set : NULL, text, size, &layout);
    const char *const again[] = {once, layout};
    for (int i = 0; once && i < 2; i++) {
        if (strlen(again[i]) > 1 << 20) continue; /* escapes made it too long for a config */
        char *twice = canonical_of(mem, NULL, again[i], strlen(again[i]), NULL);
        if (!twice || strcmp(once, twice) != 0) abort();
        free(twice);
    }
    free(once);
    free(layout);
    if (fth_mem_destroy(mem, NULL) != FTH_OK) abort();
    return 0;
}
