/* instrument.c - the instrument in one struct: this is what the program sees. */
#include "companions/companions.h"
#include "figures/figures.h"
#include "image/image.h"
#include "refine/refine.h"
#include "series/jobs.h"
#include "settings/settings.h"

static fth_status direct_run(const fth_direct_call *call, fth_err *err)
{
    if (!call->value(call->user, "flags")) return br_image_command(call, err);
    if (call->value(call->user, "json")) {
        FTH_FAIL(err, FTH_E_COMMAND,
                 "--flags prints a table for people and cannot be combined with --json");
        fth_err_hint(err, "give one of the two");
        return FTH_E_COMMAND;
    }
    br_flags_markdown(call->out);
    return FTH_OK;
}

static const fth_flag render_flags[] = {FTH_STAGE_FORCE, {0}};

/* `keys` are what a stage depends on: nothing else makes it run again. */
static const fth_stage stages[] = {
    {.name = "render",
     .doing = "rendering",
     .brief = "render the frames of a job",
     .keys = "name seed compat crystal beam detector scan stills sampling output seeds quirks",
     .after = "",
     .figure = "photons",
     .flag = render_flags,
     .algorithm = 1,
     .keeps = "frames",
     .files = br_render_files,
     .plan = br_render_plan,
     .run = br_render_run},
    {.name = "figures",
     .doing = "drawing",
     .brief = "draw frames, their average and their photons",
     .keys = "figures stills.count output.container",
     .after = "render",
     .files = br_figures_files,
     .plan = br_figures_plan,
     .algorithm = 1,
     .run = br_figures_run},
};

/* Names of programs that act as these commands: their behaviour and exit codes. */
static const fth_link links[] = {
    {.name = "nanoBragg", .flags = {"--compat=c"}, .code = 9},
    {.name = "nanoBraggCUDA", .flags = {"--compat=c"}, .code = 9, .gpu = true},
    {0}};
static const fth_link noisify_link[] = {{.name = "noisify", .flags = {"--compat=c"}, .code = 9},
                                        {0}},
                      nonbragg_link[] = {{.name = "nonBragg", .flags = {"--compat=c"}, .code = 9},
                                         {0}};

static const fth_direct direct = {
    .args = "[NANOBRAGG FLAGS]",
    .brief = "simulate diffraction images of small crystals",
    .doc = "Takes the command line of nanoBragg: flags with one dash, and their values, are those "
           "of that program; --flags lists them, and so does docs/bragg-flags.md. Flags with two "
           "dashes are Fathom's own and may stand anywhere."
           "\n\n"
           "Without --compat c the physics is computed as intended, names of flags are exact, "
           "and mistakes are errors. Under the name nanoBragg the program does what nanoBragg "
           "does, and prints what it prints; there every failure has the exit code 9. "
           "nanoBraggCUDA is the same, on a GPU where there is one; noisify and nonBragg are the "
           "verbs of these names."
           "\n\n"
           "Flags of nanobrag_torch and of nanoBraggCUDA are accepted too: -device, -dtype and "
           "-precision choose device and precision, -trace_pixel SLOW FAST is -printout_pixel FAST "
           "SLOW, and -pixel_batch_size and -show_config have no effect, which a notice on "
           "stderr says.",
    .example = "fathom bragg -hkl P1.hkl -cell 70 80 90 75 85 95 -N 5 -lambda 1 -distance 100\n"
               "nanoBragg -hkl P1.hkl -mat A.mat -lambda 0.9795 -distance 231 -N 20",
    .flag = br_direct_flags,
    .link = links,
    .device_word = "-device", /* of nanobrag_torch: foreign.c */
    .run = direct_run,
};

static const fth_verb verbs[] = {
    {.name = "refine",
     .args = "IMAGE [NANOBRAGG FLAGS]",
     .brief = "recover cell, orientation, detector and scale from an image",
     .doc = br_refine_doc,
     .raw = true,
     .flag = br_refine_flags,
     .heeds = "seed plan json quiet",
     .run = br_refine_run},
    {.name = "noisify",
     .args = "-bin FILE [NOISIFY FLAGS]",
     .brief = "add the noise of a detector: counting, point spread, read-out",
     .doc = br_noisify_doc,
     .raw = true,
     .flag = br_companion_flags,
     .heeds = "seed plan json quiet",
     .link = noisify_link,
     .run = br_noisify_run},
    {.name = "nonbragg",
     .args = "-stol FILE [NONBRAGG FLAGS]",
     .brief = "scattering of air, water and the like from F(stol), or F from an image",
     .doc = br_nonbragg_doc,
     .raw = true,
     .flag = br_companion_flags,
     .heeds = "seed plan json quiet",
     .link = nonbragg_link,
     .run = br_nonbragg_run},
    {.name = "draw",
     .args = "[NANOBRAGG FLAGS]",
     .brief = "draw figures of an image: spots, radial average, derivatives, quirks",
     .doc = br_figures_doc,
     .raw = true,
     .flag = br_figures_flags,
     .heeds = "seed plan json quiet",
     .run = br_figures_run_verb},
};
static const fth_verb *const verb_list[] = {&verbs[0], &verbs[1], &verbs[2], &verbs[3]};

const fth_instrument fth_instrument_bragg = {
    .name = "bragg",
    .brief = "simulate diffraction images of small crystals",
    .schema = &br_schema,
    .stage = stages,
    .n_stages = sizeof stages / sizeof stages[0],
    .direct = &direct,
    .verb = verb_list,
    .n_verbs = sizeof verb_list / sizeof verb_list[0],
    .general = br_is_general,
    .expand = br_expand,
    .model = br_model_name,
    .gpu = true,
    .ranks = true,
};
