/* instrument.c - the instrument in one struct: this is what the program sees. */
#include <fathom/instrument.h>

static const fth_config_key keys[] = {
    FTH_INSTRUMENT_KEYS("1", "outputs/bragg"),
};

static const fth_schema schema = {
    .name = "bragg",
    .brief = "Diffraction images of small crystals.",
    .key = keys,
    .n_keys = sizeof keys / sizeof keys[0],
};

static const fth_flag direct_flags[] = {
    {.name = "compat",
     .value = FTH_FLAG_WORD,
     .doc = "spec: the physics as intended; c: as nanoBragg computes it, defects included"},
    {.name = "quirk",
     .value = FTH_FLAG_SET,
     .many = true,
     .doc = "switch one behaviour of nanoBragg: phi-carryover=on"},
    {0}};

/* The words are read, and nothing else yet. */
static fth_status direct_run(const fth_direct_call *call, fth_err *err)
{
    (void)err;
    const char *compat = call->value(call->user, "compat");
    fprintf(call->out, "compat %s, %d words\n", compat ? compat : "spec", call->n_words);
    return FTH_OK;
}

static const fth_direct direct = {
    .args = "[NANOBRAGG FLAGS]",
    .brief = "simulate diffraction images of small crystals",
    .doc = "Takes the command line of nanoBragg: flags with one dash, and their values, are those "
           "of that program. Flags with two dashes are Fathom's own and may stand anywhere.",
    .example = "fathom bragg -hkl P1.hkl -cell 70 80 90 75 85 95 -N 5 -lambda 1 -distance 100\n"
               "nanoBragg -hkl P1.hkl -mat A.mat -lambda 0.9795 -distance 231 -N 20",
    .flag = direct_flags,
    .link = "nanoBragg",
    .link_flags = {"--compat=c"},
    .link_code = 9,
    .run = direct_run,
};

const fth_instrument fth_instrument_bragg = {
    .name = "bragg",
    .brief = "simulate diffraction images of small crystals",
    .schema = &schema,
    .direct = &direct,
};
