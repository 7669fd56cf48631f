/* fuzz_xml.c - any bytes as an XML document.
 * seconds: 5 */
#include "testing/io/fuzz.h"

#include "text/xml.h"

#include <stdlib.h>
#include <string.h>

/* Every element, its attributes and its text can be read to their ends. */
static uint64_t walk(const fth__xml_node *node)
{
    uint64_t n = 0;
    for (; node; node = fth__xml_next(node, NULL)) {
        n += strlen(fth__xml_name(node)) + strlen(fth__xml_text(node));
        if (fth__xml_attr(node, "id")) n += strlen(fth__xml_attr(node, "id"));
        n += walk(fth__xml_child(node, NULL));
    }
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fth_mem_options opt;
    fth_mem_options_default(&opt);
    opt.budget_bytes = 1 << 20;
    fth_mem *mem = NULL;
    if (fth_mem_create(&mem, &opt, NULL) != FTH_OK) abort();
    fth__xml *xml = NULL;
    const fth_status s = fth__xml_parse(&xml, mem, "fuzz", (const char *)data, size, NULL);
    if (s != FTH_OK && s != FTH_E_FILE_FORMAT) abort();
    if (xml && walk(fth__xml_root(xml)) == 0) abort(); /* a root has a name */
    fth__xml_free(xml);
    if (fth_mem_destroy(mem, NULL) != FTH_OK) abort();
    return 0;
}
