/* fuzz_bragg_flags.c - any bytes as a command line of nanoBragg, in both modes, and resolved where
 * it asks for no more than a small image. seconds: 5 */
#include "testing/io/fuzz.h"

#include "instruments/bragg/console/console.h"
#include "instruments/bragg/experiment/resolve.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS = 64, BYTES = 4096 };

/* Files are not ours to read, and large sizes only cost time. */
static void tame(br_flags *f)
{
    f->hkl = f->mat = f->mask = f->img = f->sources = f->stol = NULL;
    f->dump = NULL;
    f->pixels[0] = f->pixels[0] > 0 ? f->pixels[0] % 16 + 1 : f->pixels[0];
    f->pixels[1] = 16;
    f->mosaic_domains %= 16;
    f->phi_steps %= 16;
    f->dispsteps %= 16;
    f->layers %= 16;
    for (int i = 0; i < 2; i++) {
        f->div_steps[i] %= 16;
        f->div_step[i] = -1;
    }
    if (f->phi_step > 0) f->phi_step = 1;
    if (f->osc > 10) f->osc = 10; /* the console has a line for each step; a plan would refuse */
}

static void resolve(fth_mem *mem, br_flags *f)
{
    static br_experiment e;
    tame(f);
    if (br_experiment_resolve(&e, mem, f, NULL) != FTH_OK) return;
    for (int p = 0; p < BR_PARAMS; p++)
        if (!isfinite(e.param[p])) abort();
    if (e.scene.fast < 1 || e.scene.slow < 1 || e.scene.oversample < 1 || e.scene.phis < 1) abort();
    if (e.scene.roi[0] < 0 || e.scene.roi[1] >= e.scene.fast) abort();
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (out) {
        br_console_before(out, f, &e);
        fclose(out);
    }
    free(text);
    br_experiment_clear(&e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[BYTES], *word[WORDS];
    int n = 0;
    if (size >= BYTES) return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    for (char *w = strtok(text, " \t\n"); w && n < WORDS; w = strtok(NULL, " \t\n")) word[n++] = w;
    fth_mem *mem = NULL;
    if (fth_mem_create(&mem, NULL, NULL) != FTH_OK) return 0;
    for (int spec = 0; spec < 2; spec++) {
        br_flags f;
        br_flags_default(&f, spec != 0);
        if (br_flags_parse(&f, n, word, NULL) == FTH_OK) resolve(mem, &f);
        if (n > 0) {
            br_flags_default(&f, spec != 0);
            (void)br_flags_set(&f, word[0], (const char *const *)(word + 1), n - 1, NULL);
            (void)br_flags_quirk(&f, word[0], NULL);
        }
    }
    if (fth_mem_destroy(mem, NULL) != FTH_OK) abort();
    return 0;
}
