/* export.c - an operation behind a symbol of a shared object, built with the same fathom/op.h. */
#include "trial/check.h"

#include <fathom/op_check.h>

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

/* The size that the table of symbols gives what stands at this address; 0: it does not say. */
static uint64_t symbol_bytes(const void *symbol)
{
    Dl_info info;
    const ElfW(Sym) *entry = NULL;
    union {
        const ElfW(Sym) * *entry;
        void **any;
    } to = {&entry};
    if (!dladdr1(symbol, &info, to.any, RTLD_DL_SYMENT)) return 0;
    return info.dli_saddr == symbol && entry ? (uint64_t)entry->st_size : 0;
}

static fth_status other_version(const char *name, fth_err *err, const char *what,
                                unsigned long long found, unsigned long long want)
{
    const fth_status s =
        FTH_FAIL(err, FTH_E_GRAPH_OP,
                 "'%.80s' was built with another fathom/op.h: its %s is %llu, this "
                 "library's is %llu",
                 name, what, found, want);
    if (err)
        snprintf(err->hint, sizeof err->hint,
                 "build the shared object again with the headers "
                 "of this library");
    return s;
}

fth_status fth_op_import(const fth_op **out, const void *symbol, const char *name, fth_err *err)
{
    *out = NULL;
    if (!name) name = "the operation";
    if (!symbol) return FTH_FAIL(err, FTH_E_USAGE, "'%.80s': its address is NULL", name);
    const uint64_t bytes = symbol_bytes(symbol);
    fth_op_export record;
    if (bytes == 0 || bytes >= sizeof record.magic)
        memcpy(record.magic, symbol, sizeof record.magic);
    if ((bytes > 0 && bytes < sizeof record.magic) ||
        memcmp(record.magic, FTH_OP_MAGIC, sizeof record.magic) != 0) {
        if (bytes > 0 && bytes != sizeof(fth_op))
            return other_version(name, err, "size", bytes, sizeof(fth_op));
        *out = symbol;
        return FTH_OK;
    }
    memcpy(&record, symbol, sizeof record);
    const struct {
        const char *what;
        unsigned long long found, want;
    } same[] = {{"version", record.abi, FTH_OP_ABI},
                {"fth_op", record.op_bytes, sizeof(fth_op)},
                {"fth_node", record.node_bytes, sizeof(fth_node)},
                {"fth_call", record.call_bytes, sizeof(fth_call)}};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (same[i].found != same[i].want)
            return other_version(name, err, same[i].what, same[i].found, same[i].want);
    if (!record.op) return FTH_FAIL(err, FTH_E_USAGE, "'%.80s': its operation is NULL", name);
    *out = record.op;
    return FTH_OK;
}
