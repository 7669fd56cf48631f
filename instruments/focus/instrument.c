/* instrument.c - the instrument in one struct: this is what the program sees. */
#include "focus.h"

static const fth_verb *const verbs[] = {
    &fo_verb_stack,      &fo_verb_run, &fo_verb_plan,  &fo_verb_info,    &fo_verb_sheet,
    &fo_verb_init_plate, &fo_verb_toy, &fo_verb_bench, &fo_verb_convert, &fo_verb_selftest};

const fth_instrument fth_instrument_focus = {
    .name = "focus",
    .brief = "z-stacks of microscopes to images that are sharp everywhere",
    .schema = &fo_schema,
    .stage = fo_stages,
    .n_stages = FO_STAGES,
    .model = fo_model_name,
    .verb = verbs,
    .n_verbs = sizeof verbs / sizeof verbs[0],
    .gpu = true, /* every operation of ops/ has a kernel */
    .place = fo_place,
    .examine = fo_examine,
};
