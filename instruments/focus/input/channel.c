/* channel.c - see channel.h. */
#include "channel.h"

#include <string.h>
#include <strings.h>

static const char *name_of(const fo_file *f, int64_t c)
{
    const char *name = f->images ? fth_images_channel(f->images, c) : "";
    return name ? name : "";
}

static bool find_name(const fo_file *f, const char *wanted, int64_t *out)
{
    for (int64_t c = 0; c < f->size[FO_C]; c++)
        if (strcasecmp(name_of(f, c), wanted) == 0) {
            *out = c;
            return true;
        }
    return false;
}

/* "0 'BF', 1 'GFP'" */
static const char *list_names(const fo_file *f, char *text, size_t bytes)
{
    size_t n = 0;
    text[0] = '\0';
    for (int64_t c = 0; c < f->size[FO_C] && n < bytes; c++)
        n += (size_t)snprintf(text + n, bytes - n, "%s%lld%s%.60s%s", c ? ", " : "", (long long)c,
                              name_of(f, c)[0] ? " '" : "", name_of(f, c),
                              name_of(f, c)[0] ? "'" : "");
    return text;
}

static void refuse(const fo_file *f, const char *wanted, fo_problems *problems)
{
    char names[300];
    list_names(f, names, sizeof names);
    if (*wanted)
        fo_problems_add(problems, false, NULL, "%.200s: no channel '%.60s'; the channels are %s",
                        f->path, wanted, names);
    else
        fo_problems_add(problems, false, "choose one with --channel, or use --channels each",
                        "%.200s: no channel is recognised as brightfield: %s", f->path, names);
}

void fo_channel_choose(fo_file *file, const fo_selection *selection, fo_problems *problems)
{
    static const char *const known[] = {"BF", "EYES - Dia", "Empty"};
    const char *const wanted = selection->channel;
    int64_t number = 0;
    file->channel = 0;
    if (*wanted) {
        file->rgb = false; /* one colour, if that is what is wanted */
        if (fth_int_parse(wanted, &number) && number >= 0 && number < file->size[FO_C])
            file->channel = number;
        else if (!find_name(file, wanted, &file->channel))
            refuse(file, wanted, problems);
        return;
    }
    if (file->rgb || file->size[FO_C] == 1) return;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (find_name(file, known[i], &file->channel)) return;
    if (selection->channels != FO_CHANNELS_EACH) refuse(file, "", problems);
}
