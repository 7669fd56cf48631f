/* fuzz_json.c - any bytes as JSON: what is read must survive being written and read again.
 *
 * seconds: 5 */
#include "testing/io/fuzz.h"
#include <fathom/json.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Ask every value for everything; nothing of it may crash. */
static void ask_all(const fth_json_value *v)
{
    const void *at = NULL;
    const char *key = NULL;
    const fth_json_value *member = NULL;
    (void)fth_json_get_text(v, NULL, "");
    (void)fth_json_get_int(v, NULL, 0);
    (void)fth_json_get_u64(v, "a", 0);
    (void)fth_json_get_hash(v, NULL, 0);
    (void)fth_json_get_real(v, NULL, 0);
    (void)fth_json_get_bool(v, NULL, false);
    if (fth_json_is_object(v))
        while (fth_json_next(v, &at, &key, &member)) ask_all(member);
    else
        for (int64_t i = 0; i < fth_json_count(v); i++) ask_all(fth_json_at(v, i));
}

/* The text of a document, to be freed with fth_json_free. */
static void write_again(fth_json_writer *w, fth_mem *mem, const fth_json *doc, bool indent)
{
    fth_json_begin(w, mem, indent);
    fth_json_copy(w, NULL, fth_json_root(doc));
    if (fth_json_end(w, NULL) != FTH_OK) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fth_mem_options opt;
    fth_mem_options_default(&opt);
    opt.budget_bytes = 1 << 20;
    fth_mem *mem = NULL;
    if (fth_mem_create(&mem, &opt, NULL) != FTH_OK) abort();
    fth_json *doc = NULL;
    const fth_status s = fth_json_parse(&doc, mem, "fuzz", (const char *)data, size, NULL);
    if (s != FTH_OK && s != FTH_E_FILE_FORMAT) abort();
    if (doc) {
        ask_all(fth_json_root(doc));
        fth_json_writer once, twice;
        write_again(&once, mem, doc, true);
        fth_json *again = NULL;
        if (fth_json_parse(&again, mem, "again", once.data, (size_t)once.used, NULL) != FTH_OK)
            abort();
        write_again(&twice, mem, again, true);
        if (once.used != twice.used || memcmp(once.data, twice.data, (size_t)once.used) != 0)
            abort();
        fth_json_free(&once);
        fth_json_free(&twice);
        fth_json_destroy(again);
    }
    fth_json_destroy(doc);
    if (fth_mem_destroy(mem, NULL) != FTH_OK) abort();
    return 0;
}
