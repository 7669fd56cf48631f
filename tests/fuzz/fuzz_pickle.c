/* fuzz_pickle.c - any bytes as the pickle of a model.pth: every value that it gives can be asked
 * for. seconds: 5 */
#include "testing/io/fuzz_file.h"

#include "instruments/spatial/import/pickle.h"

static void ask(const sp_pickle *p, sp_value v)
{
    sp_pickle_tensor t;
    int64_t n = 0;
    double x = 0;
    uint64_t bytes = 0;
    if (sp_pickle_tensor_of(p, v, &t)) { /* the last element lies inside */
        int64_t last = t.offset, count = 1;
        for (int a = 0; a < t.n_axes; a++) {
            count *= t.size[a] > 0;
            last += (t.size[a] - 1) * t.stride[a];
        }
        if (count && (last < 0 || last >= t.elements)) abort();
    }
    (void)sp_pickle_int(p, v, &n);
    (void)sp_pickle_real(p, v, &x);
    (void)sp_pickle_text(p, v, &bytes);
    (void)sp_pickle_get(p, v, "mean");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_file f = fuzz_file_open(data, size);
    sp_pickle *p = NULL;
    if (size < 1 << 16 && sp_pickle_read(&p, f.mem, "fuzz", data, size, NULL) == FTH_OK) {
        const sp_value root = sp_pickle_root(p);
        ask(p, root);
        for (int64_t i = 0; i < 16; i++) ask(p, sp_pickle_item(p, root, i));
        sp_pickle_free(p);
    }
    fuzz_file_close(&f);
    return 0;
}
