/* ptycho_faults.c - see ptycho_faults.h. */
#include "testing/ptycho/ptycho_faults.h"

#include <string.h>

static const char *value_of(void *user, const char *flag)
{
    const pf_call *c = user;
    if (strcmp(flag, "out") == 0) return c->out;
    for (const char *const *f = c->flag; f && *f; f += 2)
        if (strcmp(f[0], flag) == 0) return f[1];
    return NULL;
}

fth_status pf_run(pf_call *c, fth_err *err)
{
    fth_context *ctx = NULL;
    fth_options opt;
    char *text = NULL, word[3][FTH_PATH], *arg[3];
    size_t bytes = 0;
    int n = 0;
    fth_options_default(&opt);
    opt.mem.budget_bytes = c->memory ? c->memory : 1 << 26;
    opt.mem.fail_alloc = c->fail_alloc;
    opt.mem.fail_write = c->fail_write;
    opt.threads = 1;
    *err = (fth_err){0};
    fth_status s = fth_context_create(&ctx, &opt, err);
    if (s != FTH_OK) return s;
    for (; n < 3 && c->word[n]; n++) {
        snprintf(word[n], sizeof word[n], "%s", c->word[n]);
        arg[n] = word[n];
    }
    FILE *out = open_memstream(&text, &bytes);
    s = c->verb->run(ctx, n, arg, value_of, c, out, err);
    fclose(out);
    free(text);
    OK(fth_context_destroy(ctx, NULL)); /* nothing stays allocated */
    return s;
}

void pf_survive(pf_call c, int64_t alloc, int64_t write, const char *made)
{
    fth_err err;
    for (int kind = 0; kind < (write ? 2 : 1); kind++) {
        int64_t n = 1;
        for (;; n += kind ? write : alloc) {
            if (made) remove(made);
            c.fail_alloc = kind ? 0 : n;
            c.fail_write = kind ? n : 0;
            const fth_status s = pf_run(&c, &err);
            if (s == FTH_OK) break;
            IS_TRUE(err.text[0] != 0);
            ONE_OF(s, kind ? FTH_E_FILE_WRITE : FTH_E_NOMEM, FTH_E_BUDGET);
            IS_TRUE(!made || !fth_path_exists(made));
            IS_TRUE(n < 100000);
        }
        IS_TRUE(n > 1);
    }
}

void pf_no_remains(const char *folder)
{
    fth_texts *left = NULL;
    fth_mem *mem = t_mem(1 << 20);
    OK(fth_folder_list(&left, mem, folder, NULL));
    for (int64_t i = 0; i < fth_texts_count(left); i++)
        IS_TRUE(fth_texts_get(left, i)[0] != '.' || strcmp(fth_texts_get(left, i), ".fathom") == 0);
    fth_texts_free(left);
    OK(fth_mem_destroy(mem, NULL));
}
