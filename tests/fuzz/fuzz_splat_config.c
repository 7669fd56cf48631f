/* fuzz_splat_config.c - any text as a training_config.json: what is kept of it stays in its place.
 * seconds: 5 */
#include "testing/io/fuzz.h"

#include "instruments/splat/config/nested.h"

#include <stdlib.h>
#include <string.h>

static void keep(const char *text, const char *section)
{
    char *copy = strdup(text);
    if (!copy) abort();
    (void)gs_nested_keep(copy, section);
    if (strlen(copy) != strlen(text)) abort();
    for (size_t i = 0; copy[i]; i++)
        if (copy[i] != text[i] && copy[i] != ' ') abort();
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (!text) return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    (void)gs_nested_is(text);
    const char *other = gs_nested_stranger(text);
    if (other && (other < text || other > text + size)) abort();
    keep(text, "dataset");
    keep(text, "optimization");
    free(text);
    return 0;
}
