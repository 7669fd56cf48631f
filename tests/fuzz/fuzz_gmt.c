/* fuzz_gmt.c - any bytes as sets of genes: indices stay within the data, and each is there once.
 * seconds: 5 */
#include "instruments/spatial/genes/gene_sets.h"
#include "testing/io/fuzz_file.h"

#include <fathom/fathom.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_file f = fuzz_file_open(data, size);
    fth_mem_options opt;
    fth_mem *mem = NULL;
    fth_texts *names = NULL;
    sp_gene_sets sets;
    fth_err err = {0};
    fth_mem_options_default(&opt);
    opt.budget_bytes = 8 << 20;
    if (fth_mem_create(&mem, &opt, NULL) != FTH_OK) abort();
    if (fth_texts_create(&names, mem, NULL) != FTH_OK) abort();
    for (int i = 0; i < 8; i++)
        if (fth_texts_add(names, &"abcdefghi"[i], i < 4 ? 1 : 2, NULL) != FTH_OK) abort();
    if (sp_gene_sets_read(&sets, mem, f.path, names, NULL) == FTH_OK) {
        for (int64_t i = 0; i < sets.n; i++) {
            if (sets.listed[i] < sets.begin[i + 1] - sets.begin[i]) abort();
            for (int64_t k = sets.begin[i]; k < sets.begin[i + 1]; k++) {
                if (sets.gene[k] < 0 || sets.gene[k] >= 8) abort();
                for (int64_t j = sets.begin[i]; j < k; j++)
                    if (sets.gene[j] == sets.gene[k]) abort();
            }
        }
        sp_gene_sets_free(&sets);
    }
    fth_texts_free(names);
    if (fth_mem_destroy(mem, &err) != FTH_OK) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    fuzz_file_close(&f);
    return 0;
}
